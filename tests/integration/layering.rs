//! The floors of the house: a file imports only from floors below its own, and no format knows
//! another. The table is that of `src/lib.rs`.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules at the top of the crate, and their floors.
const FLOORS: &[(&str, u8)] = &[
    ("cli", 8),
    ("fs", 7),
    ("view", 6),
    ("array", 5),
    ("hdf5", 4),
    ("asdf", 4),
    ("detect", 4),
    ("filter", 3),
    ("model", 2),
    ("source", 1),
    ("wire", 1),
    ("error", 0),
    ("limits", 0),
];

/// What one floor may not see of itself: each of these is a house of its own.
const SEPARATE: &[(&str, &str)] = &[("hdf5", "asdf"), ("asdf", "hdf5")];

fn floor(module: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(name, _)| *name == module)
        .map(|(_, floor)| *floor)
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("sources") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The names that follow `crate::` in code, those of `crate::{a, b::c}` too.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let word = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue; // the end of a longer name
        }
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    found.push(word(&list[i..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn imports_are_read_from_every_form() {
    let code = "use crate::model::{A, b};\nuse crate::{\n    error::Error,\n    wire::{self, c},\n};\n\
                fn f() -> crate::limits::X {}\n// use crate::nothing;\n";
    assert_eq!(imports(code), ["model", "error", "wire", "limits"]);
}

#[test]
fn no_import_goes_up() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&top, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&top).expect("below src");
        let module = inside
            .iter()
            .next()
            .and_then(|m| m.to_str())
            .expect("a name");
        let module = module.trim_end_matches(".rs");
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(own) = floor(module) else {
            wrong.push(format!("{}: its module is on no floor", inside.display()));
            continue;
        };
        for import in imports(&fs::read_to_string(&file).expect("source")) {
            let allowed = match floor(&import) {
                // an item of the crate's root, such as a re-export, belongs to no floor
                None => false,
                _ if import == module => true,
                Some(other) if SEPARATE.contains(&(module, import.as_str())) => other < own,
                // detect.rs is the one file that names both formats
                Some(other) if module == "detect" => other <= own,
                // the two at the bottom, and source and wire, stand side by side
                Some(other) => other < own || (own <= 1 && other == own),
            };
            if !allowed {
                wrong.push(format!(
                    "{} (floor {own}) imports crate::{import}",
                    inside.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
