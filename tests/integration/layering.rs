//! The layers of the crates. A file imports only from layers below its own, and no two files of a
//! layer import each other. If the `lib.rs` of a crate numbers the layers, the numbers are those of
//! the crate's table here. No file may have a mutable static.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layers of a crate: each of its top-level modules with its layer.
type Floors = &'static [(&'static str, u8)];

/// The directory of the sources of each crate, and its layers. Cargo refuses cycles of crates.
const CRATES: &[(&str, Floors)] = &[
    ("src", COMMAND),
    ("crates/h5fs-conventions/src", CONVENTIONS),
    ("crates/h5fs-fetcher/src", FETCHER),
    ("crates/h5fs-joined/src", JOINED),
    ("crates/h5fs-reader/src", READER),
    ("crates/h5fs-tree/src", TREE),
    ("crates/h5fs-view/src", VIEW),
];

/// The folder of the command whose folders have layers of their own.
const COMMAND_FOLDER: &str = "src/cli";

/// Layers whose modules may import each other. This list may only shrink.
const KNOTS: &[(Floors, u8)] = &[];

const COMMAND: Floors = &[("cli", 1), ("limits", 0)];

const CLI: Floors = &[
    ("view_command", 10),
    ("attached_mount", 9),
    ("serve", 9),
    ("inspect", 8),
    ("keeper", 8),
    ("fetcher", 8),
    ("mount", 7),
    ("advice", 6),
    ("args", 5),
    ("browser", 5),
    ("text", 4),
    ("sandbox", 3),
    ("scans", 3),
    ("options", 2),
    ("invocation", 1),
    ("machine", 1),
    ("listen", 1),
];

const CONVENTIONS: Floors = &[
    ("attributes", 3),
    ("dimension_names", 3),
    ("padded", 3),
    ("selected_part", 3),
    ("pandas_categories", 3),
    ("dimensions", 2),
    ("matlab_empty", 2),
    ("packing", 2),
    ("pickle", 2),
    ("table_budget", 2),
    ("time", 2),
    ("calendar", 1),
    ("csv_field", 1),
    ("reference_time", 1),
    ("stored_type", 1),
    ("limits", 0),
];

const FETCHER: Floors = &[
    ("fetcher", 9),
    ("service", 8),
    ("cached", 7),
    ("names", 7),
    ("transfer", 6),
    ("exchange", 5),
    ("login", 4),
    ("signer", 3),
    ("address", 3),
    ("client", 2),
    ("disk_cache", 2),
    ("rate_limits", 2),
    ("page_budget", 2),
    ("retries", 1),
    ("pelican", 1),
    ("settings", 1),
    ("hosts", 0),
    ("links", 0),
    ("fetch_error", 0),
    ("limits", 0),
];

const JOINED: Floors = &[
    ("container", 9),
    ("tree", 8),
    ("tables", 7),
    ("scales", 6),
    ("variable", 6),
    ("joined_array", 5),
    ("files", 4),
    ("member_mapping", 3),
    ("placing", 2),
    ("members", 1),
    ("choice", 1),
    ("element_recoding", 0),
    ("instants", 0),
    ("paths", 0),
    ("limits", 0),
];

const READER: Floors = &[
    ("file", 9),
    ("detect", 8),
    ("array", 7),
    ("hdf5", 7),
    ("asdf", 7),
    ("filter", 6),
    ("model", 5),
    ("source", 4),
    ("memory", 3),
    ("wire", 2),
    ("error", 1),
    ("limits", 0),
];

const TREE: Floors = &[
    ("fuse", 13),
    ("http", 13),
    ("served_tree", 12),
    ("archive", 11),
    ("document", 10),
    ("path_resolution", 10),
    ("filesystem", 9),
    ("node_table", 8),
    ("views", 7),
    ("nodes", 6),
    ("names", 5),
    ("data_files", 4),
    ("requests", 4),
    ("state", 3),
    ("stat", 2),
    ("options", 1),
    ("name", 1),
    ("workers", 1),
    ("errno", 0),
    ("metrics", 0),
    ("mount_process", 0),
    ("limits", 0),
];

const VIEW: Floors = &[
    ("documents", 8),
    ("netcdf", 8),
    ("pictures", 7),
    ("parquet", 7),
    ("cf", 6),
    ("table", 5),
    ("csv", 4),
    ("npy", 4),
    ("json", 3),
    ("framed", 3),
    ("hdf5_file", 3),
    ("zarr", 3),
    ("elements", 2),
    ("text_files", 1),
    ("view", 0),
    ("limits", 0),
];

/// Groups of files that may import one another, each with the reason. This list may only shrink.
const CYCLES: &[(&[&str], &str)] = &[];

/// Statics other than tables, including thread-locals, each with the reason. State of a request or
/// a mount must be passed as an argument. This list may only shrink.
const STATICS: &[(&str, &str)] = &[];

fn floor(floors: Floors, module: &str) -> Option<u8> {
    floors
        .iter()
        .find(|(name, _)| *name == module)
        .map(|(_, floor)| *floor)
}

/// Returns the source files of each crate by module path: `src/nodes/object.rs` is `nodes::object`.
fn sources() -> Vec<BTreeMap<String, String>> {
    CRATES.iter().map(|(top, _)| sources_below(top)).collect()
}

fn sources_below(top: &str) -> BTreeMap<String, String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join(top);
    let mut pending: Vec<PathBuf> = vec![top.clone()];
    let mut found = BTreeMap::new();
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).expect("sources") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let inside = path.strip_prefix(&top).expect("below src");
                let name = inside
                    .with_extension("")
                    .to_string_lossy()
                    .replace('/', "::");
                found.insert(name, fs::read_to_string(&path).expect("source"));
            }
        }
    }
    found
}

/// Attributes of an item that only tests compile.
const TEST_ONLY: &[&str] = &["#[cfg(test)]", "#[cfg(any(test, feature = \"testing\"))]"];

/// Returns the code without comments, without the tests at its end, and without visibility
/// modifiers, because these name a module without importing it.
fn production(code: &str) -> String {
    let mut kept = String::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        if TEST_ONLY.contains(&line.trim()) {
            match lines.peek() {
                Some(next) if next.trim_start().starts_with("mod tests {") => break,
                _ => _ = lines.next(),
            }
        } else if !line.trim_start().starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    without_visibility(&kept)
}

fn without_visibility(code: &str) -> String {
    let mut parts = code.split("pub(in ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str("pub ");
        kept.push_str(
            part.split_once(')')
                .map_or("", |(_, rest)| rest.trim_start()),
        );
    }
    kept
}

/// Returns the paths after `prefix` in the code. `{a, b::c}` yields `["a"], ["b", "c"]`.
fn paths_after(code: &str, prefix: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            paths(&code[at + prefix.len()..], &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Parses one path or a list of paths after `parents`. Returns the rest of the code.
fn paths<'c>(code: &'c str, parents: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'c str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
            if let Some(end) = rest.strip_prefix('}') {
                return end;
            }
            let before = rest.len();
            rest = paths(rest, parents, found);
            if rest.len() == before {
                return rest; // not a list of paths
            }
        }
    }
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (word, rest) = code.split_at(end.unwrap_or(code.len()));
    if word.is_empty() {
        return rest;
    }
    parents.push(word.to_owned());
    let rest = match rest.strip_prefix("::") {
        Some(next) if !next.starts_with('<') => paths(next, parents, found),
        _ => {
            let whole = parents.iter().filter(|part| *part != "self");
            found.push(whole.cloned().collect());
            rest
        }
    };
    parents.pop();
    rest
}

#[test]
fn imports_are_read_from_every_form() {
    let code = "use crate::model::{A, b};\nuse crate::{\n    error::Error,\n    wire::{self, c},\n};\n\
                pub(in crate::fs) fn f() -> crate::limits::X {}\n// use crate::nothing;\n#[cfg(test)]\nmod tests {}\n";
    let found = paths_after(&production(code), "crate::");
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        found,
        [
            "model::A",
            "model::b",
            "error::Error",
            "wire",
            "wire::c",
            "limits::X"
        ]
    );
}

/// Modules with helpers for the tests of all layers.
const TEST_MODULES: &[&str] = &["tests", "testing", "fake", "cancellation"];

/// Returns whether a file of `module` may import from the module `import` of its crate.
fn may_import(floors: Floors, module: &str, import: &str) -> bool {
    if import == module || TEST_MODULES.contains(&module) || TEST_MODULES.contains(&import) {
        return true;
    }
    let (Some(own), Some(other)) = (floor(floors, module), floor(floors, import)) else {
        // an item of the crate's root, such as a re-export, belongs to no layer
        return false;
    };
    other < own || (other == own && KNOTS.contains(&(floors, own)))
}

#[test]
fn no_import_goes_up() {
    let mut wrong = Vec::new();
    let folder = (COMMAND_FOLDER, CLI);
    for (top, floors) in CRATES.iter().chain([&folder]) {
        let prefix = match *top {
            COMMAND_FOLDER => "crate::cli::",
            _ => "crate::",
        };
        for (file, code) in sources_below(top) {
            let module = file.split("::").next().expect("a name");
            let is_test = file.split("::").any(|part| part.starts_with("test"));
            if is_test || matches!(module, "lib" | "main") {
                continue;
            }
            if floor(floors, module).is_none() && !TEST_MODULES.contains(&module) {
                wrong.push(format!("{top}: {file}: its module is on no floor"));
            }
            let code = production(&code);
            for import in paths_after(&code, prefix) {
                let import = import.first().map_or("", String::as_str);
                if !may_import(floors, module, import) {
                    wrong.push(format!("{top}: {file} imports {prefix}{import}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the imports of each file. An item that a module re-exports belongs to the file that
/// defines it. A re-export itself does not count as an import.
fn imports(sources: &BTreeMap<String, String>) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut re_exports: BTreeMap<String, String> = BTreeMap::new();
    for (file, code) in sources {
        for line in production(code).split(';') {
            let Some((_, path)) = line.split_once("pub use ") else {
                continue;
            };
            let mut found = Vec::new();
            paths(path, &mut Vec::new(), &mut found);
            for path in found {
                let whole = match path.first().map(String::as_str) {
                    Some("crate") => path[1..].join("::"),
                    _ => format!("{file}::{}", path.join("::")),
                };
                let name = path.last().expect("a name");
                re_exports.insert(format!("{file}::{name}"), whole);
            }
        }
    }
    let holder = |mut path: String| {
        while let Some(whole) = re_exports.get(&path) {
            path = whole.clone();
        }
        loop {
            if let Some((file, _)) = sources.get_key_value(&path) {
                return Some(file.as_str());
            }
            path.truncate(path.rfind("::")?);
        }
    };
    let is_code = |file: &str| !file.split("::").any(|part| part.starts_with("test"));
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, code) in sources.iter().filter(|(file, _)| is_code(file)) {
        let code: String = production(code)
            .split(';')
            .filter(|statement| !statement.contains("pub use "))
            .map(|statement| format!("{statement};"))
            .collect();
        let above = file.rfind("::").map_or("", |end| &file[..end + 2]);
        let named = paths_after(&code, "crate::")
            .into_iter()
            .map(|path| path.join("::"));
        let beside = paths_after(&code, "super::").into_iter();
        let beside = beside.map(|path| format!("{above}{}", path.join("::")));
        let inside = sources.keys().filter_map(|other| {
            let child = other.strip_prefix(file.as_str())?.strip_prefix("::")?;
            let is_named = !paths_after(&code, &format!("{child}::")).is_empty();
            is_named.then(|| other.clone())
        });
        let found = named.chain(beside).chain(inside).filter_map(holder);
        let found = found.filter(|other| *other != file && is_code(other));
        graph.insert(file, found.collect());
    }
    graph
}

/// Returns all files that `from` imports directly or indirectly.
fn reached<'s>(graph: &BTreeMap<&'s str, BTreeSet<&'s str>>, from: &'s str) -> BTreeSet<&'s str> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(file) = pending.pop() {
        for next in graph.get(file).into_iter().flatten() {
            if reached.insert(*next) {
                pending.push(next);
            }
        }
    }
    reached
}

#[test]
fn no_files_import_one_another() {
    let crates = sources();
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, others) in crates.iter().flat_map(imports) {
        graph.entry(file).or_default().extend(others);
    }
    let all: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|file| (*file, reached(&graph, file)))
        .collect();
    let mut cycles: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for (file, reached) in &all {
        let cycle: BTreeSet<&str> = reached
            .iter()
            .filter(|other| all.get(*other).is_some_and(|others| others.contains(file)))
            .copied()
            .collect();
        if !cycle.is_empty() {
            cycles.insert(cycle);
        }
    }
    let allowed: BTreeSet<BTreeSet<&str>> = CYCLES
        .iter()
        .map(|(files, _)| files.iter().copied().collect())
        .collect();
    let describe = |cycle: &BTreeSet<&str>| {
        let edges = cycle.iter().map(|file| {
            let next: Vec<&str> = graph[file].intersection(cycle).copied().collect();
            format!("  {file} imports {}", next.join(", "))
        });
        let edges: Vec<String> = edges.collect();
        format!("{} files in a cycle:\n{}", cycle.len(), edges.join("\n"))
    };
    let new: Vec<String> = cycles.difference(&allowed).map(describe).collect();
    assert!(new.is_empty(), "{}", new.join("\n"));
    let gone: Vec<_> = allowed.difference(&cycles).collect();
    assert!(gone.is_empty(), "take out of CYCLES: {gone:?}");
}

/// Returns the names of the statics in the code that are not tables. All mutable statics are among
/// them.
fn statics(code: &str) -> Vec<&str> {
    let is_item = |at: &usize| code[..*at].ends_with(char::is_whitespace) || *at == 0;
    let found = code.match_indices("static ").map(|(at, _)| at);
    let found = found.filter(is_item).filter_map(|at| {
        let (name, rest) = code[at + "static ".len()..].split_once(':')?;
        let kind = rest.split_once('=')?.0.trim();
        let changes = ["Atomic", "Cell", "Lock", "Mutex"];
        let is_table = kind.starts_with("&[") && !changes.iter().any(|word| kind.contains(word));
        (!is_table).then_some(name.trim())
    });
    found.collect()
}

#[test]
fn statics_are_read_from_every_form() {
    let code = "static A: u8 = 0;\npub(crate) static B: Mutex<()> = Mutex::new(());\n\
                thread_local! {\n    static C: Cell<u8> = const { Cell::new(0) };\n}\n\
                fn f(text: &'static str) {\n    static mut D: u8 = 1;\n}\n// static E: u8 = 0;\n\
                static F: &[u8] = &[1];\nstatic G: &[AtomicU8] = &[AtomicU8::new(0)];\n";
    assert_eq!(statics(&production(code)), ["A", "B", "C", "mut D", "G"]);
}

#[test]
fn nothing_is_kept_in_statics() {
    let mut found = BTreeSet::new();
    for (file, code) in sources().into_iter().flatten() {
        let code = production(&code);
        let names = statics(&code).into_iter();
        found.extend(names.map(|name| format!("{file}::{name}")));
    }
    let allowed: BTreeSet<String> = STATICS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let new: Vec<_> = found.difference(&allowed).collect();
    assert!(
        new.is_empty(),
        "pass what these hold as an argument: {new:?}"
    );
    let gone: Vec<_> = allowed.difference(&found).collect();
    assert!(gone.is_empty(), "take out of STATICS: {gone:?}");
}
