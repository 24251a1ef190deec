//! Unit tests of the scheduler of requests.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use h5fs_reader::memory::cancel::CancelToken;

use super::queue::DataFileNumber;
use super::*;

/// Number of quick slots in addition to one for each thread.
const SLOW: usize = limits::SLOW_REQUESTS;

const LIMIT: Duration = Duration::from_secs(60);

/// Schedules a job that ignores cancellation, for a request to `object` of `file`.
fn answer(
    workers: &Workers,
    object: RequestObject,
    file: DataFileNumber,
    mut job: impl FnMut() + Send + 'static,
) {
    ask(workers, (object, file), 0, move |_| {
        job();
        AttemptResult::Answered
    });
}

/// Schedules a job for a request of the thread `thread`. The job receives the request's token.
fn ask(
    workers: &Workers,
    of: RequestSubject,
    thread: u32,
    mut job: impl FnMut(&CancelToken) -> AttemptResult + Send + 'static,
) {
    let ticket = Arc::<RequestSlot>::default();
    let token = CancelToken::default().with_slot(&ticket);
    let caller = Caller { unique: 0, thread };
    workers.schedule_job(of, (caller, ticket), move || job(&token));
}

/// Schedules a request whose job runs until the returned sender is dropped. The receiver reports
/// that the job has started.
fn endless(workers: &Workers, object: u64) -> (Sender<()>, Receiver<()>) {
    endless_of(workers, object, None)
}

fn endless_of(workers: &Workers, object: u64, file: DataFileNumber) -> (Sender<()>, Receiver<()>) {
    let ((end, until), (begun, is_begun)) = (channel::<()>(), channel());
    answer(workers, RequestObject::Content(object), file, move || {
        begun.send(()).unwrap();
        let _ended = until.recv();
    });
    (end, is_begun)
}

/// Starts requests that occupy all receiving threads, until the senders are dropped.
fn occupy_threads(workers: &Arc<Workers>) -> Vec<Sender<()>> {
    let fill = |object| {
        let ((end, until), (begun, is_begun)) = (channel::<()>(), channel());
        let workers = Arc::clone(workers);
        thread::spawn(move || {
            answer(&workers, RequestObject::Content(object), None, move || {
                begun.send(()).unwrap();
                let _ended = until.recv();
            });
        });
        is_begun.recv_timeout(LIMIT).unwrap();
        end
    };
    // A separate statement, because the requests need the lock.
    let threads = workers.0.state().slots.threads as u64;
    (0..threads).map(fill).collect()
}

#[test]
fn requests_are_answered_while_eight_are_slow() {
    let workers = Arc::new(Workers::new(2));
    let slow = occupy_threads(&workers);
    let more: Vec<_> = (2..8).map(|object| endless(&workers, object)).collect();
    for (_, is_begun) in &more {
        is_begun.recv_timeout(LIMIT).unwrap();
    }
    let (_, refused) = endless(&workers, 3);
    for object in 100..200 {
        let (sender, answered) = channel();
        answer(&workers, RequestObject::Content(object), None, move || {
            sender.send(()).unwrap();
        });
        answered.recv_timeout(LIMIT).unwrap();
    }
    assert!(refused.try_recv().is_err(), "an object has its share");
    assert!(workers.0.state().worker_count <= 12);
    drop(more);
    refused.recv_timeout(LIMIT).unwrap();
    drop(slow);
}

/// Eight files with ten slow objects each leave slots to other files.
#[test]
fn each_file_has_its_share_of_slots() {
    let workers = Arc::new(Workers::new(2));
    let slow = occupy_threads(&workers);
    let of_files = (1000..1080).map(|object| endless_of(&workers, object, Some(object / 10)));
    let of_files: Vec<_> = of_files.collect();
    let begun = || {
        of_files
            .iter()
            .filter(|(_, begun)| begun.try_recv().is_ok())
    };
    let (mut all, end) = (slow.len(), Instant::now() + LIMIT);
    while all < SLOW + 2 && Instant::now() < end {
        all += begun().count();
        thread::yield_now();
    }
    for object in 0..100 {
        let (sender, answered) = channel();
        answer(
            &workers,
            RequestObject::Content(2000 + object),
            Some(object % 7),
            move || {
                sender.send(()).unwrap();
            },
        );
        answered.recv_timeout(LIMIT).unwrap();
    }
    all += begun().count();
    // At most one request of each file is in a slot reserved for other files.
    assert!((SLOW + 2..=SLOW + 2 + 8).contains(&all));
    drop((slow, of_files));
}

#[test]
fn the_number_of_slow_requests_and_threads_is_limited() {
    let workers = Arc::new(Workers::new(1));
    let slow = occupy_threads(&workers);
    let more: Vec<_> = (1..80).map(|object| endless(&workers, object)).collect();
    let begun = || {
        let begun = more.iter().filter(|(_, begun)| begun.try_recv().is_ok());
        begun.count()
    };
    let (mut all, end) = (1, Instant::now() + LIMIT);
    while all < SLOW + 1 && Instant::now() < end {
        all += begun();
        thread::yield_now();
    }
    thread::sleep(5 * limits::SLOW_REQUEST);
    all += begun();
    assert_eq!(all, SLOW + 1);
    assert!(workers.0.state().worker_count <= SLOW + 1 + 1);
    drop((slow, more));
}

/// Starts `many` requests with heavy work, each to its own object. Also returns the counter of
/// those whose heavy work is running.
fn heavy(workers: &Workers, many: u64) -> (Vec<Sender<()>>, Arc<AtomicUsize>) {
    let at_work = Arc::<AtomicUsize>::default();
    let ask_one = |object| {
        let (end, until) = channel::<()>();
        let at_work = Arc::clone(&at_work);
        let of = (RequestObject::Description(object), None);
        ask(workers, of, 1 + object as u32, move |cancel| {
            let begun = cancel.require_heavy_slot();
            if cancel.is_postponed_by(&begun) {
                return AttemptResult::Postponed;
            }
            at_work.fetch_add(1, Ordering::Relaxed);
            while cancel.check_cancelled().is_ok() && until.try_recv() == Err(TryRecvError::Empty) {
                thread::sleep(Duration::from_millis(1));
            }
            at_work.fetch_sub(1, Ordering::Relaxed);
            AttemptResult::Answered
        });
        end
    };
    ((0..many).map(ask_one).collect(), at_work)
}

/// Waits until `is_so` returns true.
fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "it takes too long");
        thread::sleep(Duration::from_millis(1));
    }
}

/// However many heavy requests wait, only as many as there are threads run; the others stay in the
/// queue.
#[test]
fn heavy_requests_do_not_delay_others() {
    for many in [8, 24, 100, 1000] {
        let workers = Workers::new(2);
        let (ends, at_work) = heavy(&workers, many);
        until(|| at_work.load(Ordering::Relaxed) == 2);
        for object in 2000..2100 {
            let (sender, answered) = channel();
            answer(&workers, RequestObject::Content(object), None, move || {
                sender.send(()).unwrap();
            });
            answered.recv_timeout(LIMIT).unwrap();
        }
        assert_eq!(at_work.load(Ordering::Relaxed), 2, "{many}");
        assert!(workers.0.state().worker_count <= 6, "{many}");
        drop(ends);
        until(|| {
            let state = workers.0.state();
            state.slots.requests().next().is_none() && state.is_idle()
        });
    }
}

/// Unexpectedly slow requests move to heavy slots when others wait.
#[test]
fn slow_requests_are_moved_to_heavy_slots() {
    let workers = Arc::new(Workers::new(1));
    let taken = occupy_threads(&workers);
    let (began, has_ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    for object in 0..100 {
        let (began, has_ended) = (Arc::clone(&began), Arc::clone(&has_ended));
        let of = (RequestObject::Content(object), None);
        ask(&workers, of, 0, move |cancel| {
            began.fetch_add(1, Ordering::Relaxed);
            loop {
                match cancel.check_cancelled() {
                    _ if has_ended.load(Ordering::Relaxed) => return AttemptResult::Answered,
                    Ok(()) => thread::sleep(Duration::from_millis(1)),
                    Err(_) => return AttemptResult::Postponed,
                }
            }
        });
    }
    let (sender, answered) = channel();
    answer(&workers, RequestObject::Content(2000), None, move || {
        sender.send(()).unwrap();
    });
    answered.recv_timeout(LIMIT).unwrap();
    assert!(began.load(Ordering::Relaxed) > SLOW + 1);
    has_ended.store(true, Ordering::Relaxed);
    drop(taken);
}

#[test]
fn waiting_requests_are_counted_until_their_callers_end() {
    let workers = Arc::new(Workers::with_receiving_thread(1));
    let (_ends, _) = heavy(&workers, 3);
    until(|| workers.waiting_count() == 2);
    let told = Arc::new(AtomicUsize::new(0));
    for unique in 1..=5 {
        let (held, told) = (Arc::clone(&told), Arc::clone(&told));
        let caller = Caller { unique, thread: 0 };
        let of = ("test", (RequestObject::Description(7), None));
        let (token, ticket) = (CancelToken::default(), Arc::default());
        let work = |_: &mut Arc<AtomicUsize>, token: &CancelToken| token.require_heavy_slot();
        workers.schedule_request(
            of,
            caller,
            (token, ticket),
            held,
            work,
            move |_, answered| {
                assert!(answered.is_err_and(|error| error.is_cancelled()));
                told.fetch_add(1, Ordering::Relaxed);
            },
        );
    }
    until(|| workers.waiting_count() == 7);
    workers
        .waiting_callers()
        .cancel_ended(|caller| caller.unique == 4);
    until(|| told.load(Ordering::Relaxed) == 1 && workers.waiting_count() == 6);
    workers
        .waiting_callers()
        .cancel_ended(|caller| caller.unique != 0);
    // The values held for the requests are dropped.
    until(|| Arc::strong_count(&told) == 1 && workers.waiting_count() == 2);
    assert_eq!(told.load(Ordering::Relaxed), 5);
}

#[test]
fn requests_of_ended_callers_are_cancelled() {
    let workers = Workers::new(2);
    let (ends, at_work) = heavy(&workers, 50);
    until(|| at_work.load(Ordering::Relaxed) == 2);
    let callers = workers.waiting_callers();
    assert_eq!(
        callers.threads_waiting_for(Duration::ZERO).unwrap().len(),
        50
    );
    assert!(callers.threads_waiting_for(LIMIT).unwrap().is_empty());
    callers.cancel_ended(|caller| caller.thread != 7);
    until(|| callers.threads_waiting_for(Duration::ZERO) == Some(vec![7]));
    until(|| at_work.load(Ordering::Relaxed) == 1);
    drop((ends, workers));
    until(|| callers.threads_waiting_for(Duration::ZERO).is_none());
}

#[test]
fn requests_of_one_object_keep_their_order() {
    let workers = Arc::new(Workers::new(1));
    let slow = occupy_threads(&workers);
    let (sender, answered) = channel();
    for number in 0..50 {
        let sender = sender.clone();
        answer(&workers, RequestObject::Content(7), None, move || {
            sender.send(number).unwrap();
        });
    }
    let order: Vec<_> = (0..50)
        .map(|_| answered.recv_timeout(LIMIT).unwrap())
        .collect();
    assert_eq!(order, (0..50).collect::<Vec<_>>());
    drop(slow);
}

#[test]
fn all_threads_are_used_and_survive_panics() {
    let workers = Workers::new(4);
    let workers = Arc::new(workers);
    let slow = occupy_threads(&workers);
    answer(&workers, RequestObject::AttributeValues, None, || {
        panic!("on purpose")
    });
    drop(slow);
    let barrier = Arc::new(Barrier::new(4));
    let meeting: Vec<_> = (0..4)
        .map(|_| {
            let (workers, barrier) = (Arc::clone(&workers), Arc::clone(&barrier));
            thread::spawn(move || {
                answer(&workers, RequestObject::Content(5), None, move || {
                    barrier.wait();
                });
            })
        })
        .collect();
    for thread in meeting {
        thread.join().unwrap();
    }
}
