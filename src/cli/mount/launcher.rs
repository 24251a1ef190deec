//! The launcher: the process that the user called. The launcher starts the supervisor and returns
//! when the mount answers.

use std::process::{ChildStdout, ExitCode, Stdio};

use h5fs_reader::error::{Error, Result};

use crate::cli::args::MountCommand;
use crate::cli::invocation::{Invocation, Role};
use crate::cli::mount::mounts::FreeMountPoint;
use crate::cli::mount::report::{InvalidReport, Report, ReportReader};
use crate::cli::mount::supervisor;
use crate::cli::text::error_message::print_error;

/// Starts the supervisor and waits for its report. The supervisor inherits none of the launcher's
/// three standard streams. Otherwise a program that reads such a stream to its end would wait for
/// the unmount. The supervisor notices the launcher's death by the end of its standard input.
///
/// The worker also holds the report pipe, so end of file means that supervisor and worker have both
/// ended. If the supervisor is killed before it reports, the worker reports in its place. A mount
/// that is served is therefore never reported as failed.
pub(in crate::cli) fn run(call: &Invocation, mount: &MountCommand) -> Result<ExitCode> {
    let place = mount.mountpoint.canonicalize().ok();
    let place = place.and_then(|point| FreeMountPoint::check(&point).ok());
    let started = call
        .restart_command(Role::Supervisor)
        .and_then(|mut command| {
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
        });
    let mut supervisor =
        started.map_err(|error| Error::from_io(&error, "starting the supervisor"))?;
    let output = supervisor.stdout.take();
    match output.map(receive_report) {
        Some(Ok(Some(Report::Ready))) => return Ok(ExitCode::SUCCESS),
        Some(Ok(Some(Report::Failed(text)))) => print_error(&text),
        _ => {
            let reason = "the supervisor was killed";
            if let Report::Failed(text) = Report::failure(&mount.mountpoint, reason) {
                print_error(&text);
            }
        }
    }
    supervisor::end_failed_mount(&mut supervisor, place.as_ref());
    Ok(ExitCode::FAILURE)
}

/// Prints the warnings that the supervisor sends, and returns the report that follows the warnings.
fn receive_report(output: ChildStdout) -> std::result::Result<Option<Report>, InvalidReport> {
    let mut reports = ReportReader::from_supervisor(output);
    let mut report = reports.next();
    while let Ok(Some(Report::Warning(text))) = &report {
        print_error(text);
        report = reports.next();
    }
    report
}
