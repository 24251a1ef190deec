//! Clients that have connected but have not been granted access yet.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use h5fs_reader::memory::lock::lock;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// Connected clients without access, in the order of their connections.
#[derive(Default)]
pub(super) struct UnauthorizedClients(Mutex<RegisteredClients>);

#[derive(Default)]
struct RegisteredClients {
    next: u64,
    all: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A registration of a client without access. It ends when the client is granted access or the
/// value is dropped.
pub(super) struct UnauthorizedClient {
    clients: Arc<UnauthorizedClients>,
    number: u64,
}

/// A future that completes when the client must be disconnected, because it was not granted access
/// in time, or was the oldest client without access.
pub(super) struct Disconnection(Option<(oneshot::Receiver<()>, Pin<Box<Sleep>>)>);

impl UnauthorizedClients {
    /// Registers a client that has just connected. The returned future completes unless the client
    /// is granted access within the time `most`.
    pub(super) fn register(
        self: &Arc<Self>,
        most: Duration,
    ) -> (UnauthorizedClient, Disconnection) {
        let (sender, receiver) = oneshot::channel();
        let waiting = &mut *lock(&self.0);
        let number = waiting.next;
        waiting.next = number.wrapping_add(1);
        waiting.all.insert(number, sender);
        let clients = Arc::clone(self);
        let limit = Box::pin(sleep(most));
        (
            UnauthorizedClient { clients, number },
            Disconnection(Some((receiver, limit))),
        )
    }

    /// Disconnects the client without access that connected first, if there is one.
    pub(super) fn disconnect_oldest(&self) {
        lock(&self.0).all.pop_first();
    }
}

impl UnauthorizedClient {
    /// Ends the registration, because the client has access.
    pub(super) fn grant_access(&self) {
        if let Some(sender) = lock(&self.clients.0).all.remove(&self.number) {
            let _ = sender.send(());
        }
    }
}

impl Drop for UnauthorizedClient {
    fn drop(&mut self) {
        lock(&self.clients.0).all.remove(&self.number);
    }
}

impl Future for Disconnection {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some((let_in, limit)) = &mut self.0 else {
            return Poll::Pending;
        };
        match Pin::new(let_in).poll(context) {
            Poll::Pending => limit.as_mut().poll(context),
            Poll::Ready(Err(_)) => Poll::Ready(()),
            Poll::Ready(Ok(())) => {
                self.0 = None;
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(work: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().unwrap().block_on(work);
    }

    fn is_ready(sent_away: &mut Disconnection) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        Pin::new(sent_away).poll(&mut context).is_ready()
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn who_is_not_let_in_in_time_is_sent_away() {
        clock(async {
            let clients = Arc::<UnauthorizedClients>::default();
            let [mut one, mut other] = [(); 2].map(|()| clients.register(Duration::ZERO));
            one.0.grant_access();
            sleep(Duration::from_millis(2)).await;
            assert!(!is_ready(&mut one.1) && is_ready(&mut other.1));
        });
    }

    #[test]
    fn who_has_come_first_is_sent_away_first_and_nobody_who_was_let_in() {
        clock(async {
            let clients = Arc::<UnauthorizedClients>::default();
            let mut all: Vec<_> = (0..4).map(|_| clients.register(LONG)).collect();
            all[0].0.grant_access();
            clients.disconnect_oldest();
            let away: Vec<_> = all.iter_mut().map(|(_, away)| is_ready(away)).collect();
            assert_eq!(away, [false, true, false, false]);
            // One client has disconnected itself, and one was disconnected by the server.
            all.drain(1..3);
            clients.disconnect_oldest();
            let away: Vec<_> = all.iter_mut().map(|(_, away)| is_ready(away)).collect();
            assert_eq!(away, [false, true]);
            // No client is left to disconnect.
            clients.disconnect_oldest();
            assert!(!is_ready(&mut all[0].1));
            drop(all);
            assert!(lock(&clients.0).all.is_empty());
        });
    }
}
