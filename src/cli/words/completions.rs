//! Scripts by which shells complete a command line.

use clap::Command;
use clap_complete::{Shell, generate};

/// The script for `shell`.
pub fn script(shell: Shell, mut command: Command) -> Vec<u8> {
    let mut script = Vec::new();
    generate(shell, &mut command, "h5fs", &mut script);
    match (shell, String::from_utf8(script)) {
        (Shell::Zsh, Ok(script)) => of_zsh(&script).into_bytes(),
        (_, Ok(script)) => script.into_bytes(),
        (_, Err(error)) => error.into_bytes(),
    }
}

/// The first word is a command or a source. clap knows of no such choice: in its script for zsh, a
/// command comes behind the source and the mount point.
fn of_zsh(script: &str) -> String {
    let no_place = |line: &&str| {
        !line.starts_with("':source -- The HDF5") && !line.starts_with("':mountpoint -- The dir")
    };
    let (before, after) = script
        .split_once("\":: :_h5fs_commands\"")
        .unwrap_or((script, ""));
    let before: String = before.split_inclusive('\n').filter(no_place).collect();
    let choice = "': : _alternative \"commands:command:_h5fs_commands\" \"files:source:_files\"'";
    let after = after.replace("$line[3]", "$line[1]").replacen(
        "        esac\n    ;;\nesac\n}\n",
        "            (*)\n_files && ret=0\n;;\n        esac\n    ;;\nesac\n}\n",
        1,
    );
    format!("{before}{choice}{after}")
}
