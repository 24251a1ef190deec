//! The h5fs command.

fn main() -> std::process::ExitCode {
    h5fs::cli::run(std::env::args_os())
}
