//! The process that the user calls. It opens the listening socket and creates the token, which a
//! [`Keeper`] passes to the worker, and prints the URL.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use h5fs_reader::error::Result;
use h5fs_tree::http::{Token, random};

use crate::cli::args::serve_arguments::ServeCommand;
use crate::cli::invocation::Invocation;
use crate::cli::keeper::Keeper;
use crate::cli::listen::{BoundAddress, BoundSocket};
use crate::cli::mount::notify;
use crate::cli::scans;
use crate::cli::serve::worker::machine_name;
use crate::cli::text::error_message::print_error;

/// How the user reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerRoute {
    /// By its URL, from this machine.
    Url,
    /// Through an SSH tunnel, from the machine with the browser.
    Tunnel,
}

/// Serves until a signal arrives.
///
/// # Errors
/// Fails if the listening socket cannot be opened.
pub(in crate::cli) fn run(call: &Invocation, serve: &ServeCommand) -> Result<ExitCode> {
    start(call, serve, ServerRoute::Url)
}

/// Serves a user on another machine, and prints the command for an SSH tunnel.
///
/// # Errors
/// Fails if the listening socket cannot be opened.
pub(in crate::cli) fn run_for_tunnel(call: &Invocation, serve: &ServeCommand) -> Result<ExitCode> {
    start(call, serve, ServerRoute::Tunnel)
}

fn start(call: &Invocation, serve: &ServeCommand, way: ServerRoute) -> Result<ExitCode> {
    let bound = serve.listen.bind()?;
    let token = (!serve.no_token).then(random::random_word).transpose()?;
    // The first byte is present even without a token.
    let message = format!("l{}", token.as_deref().unwrap_or_default());
    let handed = (message.as_bytes(), bound.socket.as_fd());
    let keeper = Keeper::start(call, serve.sources.first(), handed)?;
    // The port at the other loopback address stays bound until the end.
    let BoundSocket {
        socket,
        address: at,
        reserved_socket: _held,
    } = bound;
    // From here on, only the worker accepts connections.
    drop(socket);
    let scans = serve.sources.iter();
    let scans = scans.filter_map(|source| scans::mount_cache_path(source, &serve.settings));
    let scans: Vec<_> = scans.collect();
    let code = keeper.supervise(|| {
        print_address(&at, token.as_deref(), way, serve.listen.is_open_to_others());
        notify::notify_ready();
    });
    scans
        .iter()
        .for_each(|place| scans::delete_if_unused(place));
    Ok(code)
}

/// Prints how to connect to the server. The token is printed only on standard output.
fn print_address(at: &BoundAddress, token: Option<&str>, way: ServerRoute, is_open: bool) {
    let query = token
        .map(|token| format!("?token={token}"))
        .unwrap_or_default();
    let name = token.map(|token| Token::new(token.to_owned()).host_name());
    let browser = name.as_ref().and_then(|name| at.browser_authority(name));
    let authority = browser.clone().unwrap_or_else(|| at.authority());
    let mut lines = vec![format!("http://{authority}/{query}")];
    match (at, way) {
        (BoundAddress::Network(address), ServerRoute::Tunnel) => {
            let (port, host) = (
                address.port(),
                machine_name().unwrap_or_else(|| "HOST".to_owned()),
            );
            lines.push(format!("ssh -L {port}:127.0.0.1:{port} {host}"));
        }
        (BoundAddress::Unix(file), _) => {
            let path = file.path.display();
            print_error(&format!(
                "listening on {path}: curl --unix-socket {path} URL"
            ));
            if let Some(name) = &name {
                print_error(&format!(
                    "in a browser, through `ssh -L PORT:{path}`: open http://{name}:PORT/ with the \
                     token"
                ));
            }
        }
        (BoundAddress::Network(_), ServerRoute::Url) => {}
    }
    if browser.is_some() {
        let address = at.authority();
        print_error(&format!(
            "programs that cannot resolve this name use http://{address}/ and send the token as \
             `Authorization: Bearer TOKEN`"
        ));
    }
    if is_open {
        print_error(
            "warning: other machines can connect, and the token and all bytes are sent \
             unencrypted; `ssh -L` is a safe alternative",
        );
    }
    if way == ServerRoute::Tunnel {
        print_error(
            "no display here: run the second line on a machine with a display, and open the first",
        );
    }
    let mut output = io::stdout();
    for line in lines {
        let _ = writeln!(output, "{line}");
    }
    let _ = output.flush();
}
