//! Command-line completion in shells: the scripts that shells load, and the words that these
//! scripts request.
//!
//! The scripts of bash, zsh and fish contain no knowledge of the command line. The scripts call
//! `h5fs --complete SHELL WORD…` with the words up to the cursor. This call prints the words that
//! fit, one per line, each with a tab and its help. The call exits with 1 if file names fit as
//! well, otherwise with 0.

mod candidates;
mod inside;
mod line;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Command;
use clap_complete::{Shell, generate};
use h5fs_reader::error::{Error, Result};

use candidates::Candidate;

/// First argument of a call by a completion script.
pub(in crate::cli) const COMPLETE_FLAG: &str = "--complete";

/// Returns the completion script for `shell`.
pub(in crate::cli) fn script(shell: Shell, mut command: Command) -> Vec<u8> {
    match shell {
        Shell::Bash => include_bytes!("completions/h5fs.bash").to_vec(),
        Shell::Zsh => include_bytes!("completions/h5fs.zsh").to_vec(),
        Shell::Fish => include_bytes!("completions/h5fs.fish").to_vec(),
        _ => {
            let mut script = Vec::new();
            generate(shell, &mut command, "h5fs", &mut script);
            script
        }
    }
}

/// Prints the words that fit at the end of a line. `words` contains the shell's name and the words
/// of the line.
///
/// # Errors
/// Fails if standard output cannot be written.
pub(in crate::cli) fn complete(command: Command, words: &[OsString]) -> Result<ExitCode> {
    let Some((shell, words)) = words.split_first() else {
        return Ok(ExitCode::FAILURE);
    };
    let is_bash = shell == "bash";
    let (words, left_out) = if is_bash {
        line::join_words(words)
    } else {
        (words.to_vec(), 0)
    };
    let found = candidates::complete(command, &words);
    let mut out = Vec::new();
    for Candidate { word, help } in &found.candidates {
        out.extend(word.get(left_out..).unwrap_or_default());
        if !is_bash && !help.is_empty() {
            out.extend([b"\t", help.as_bytes()].concat());
        }
        out.push(b'\n');
    }
    io::Write::write_all(&mut io::stdout(), &out)
        .map_err(|error| Error::from_io(&error, "standard output"))?;
    Ok(ExitCode::from(u8::from(found.with_files)))
}
