//! The `h5fs` program.

fn main() -> std::process::ExitCode {
    h5fs::cli::run(std::env::args_os())
}
