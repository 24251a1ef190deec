//! Views without dead ends: each link in a tree or on a page leads to a file, and each file that
//! cannot be read says why.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::archive::xattr;
use crate::harness::{Mount, SOON, fixture, python, run, tree};
use crate::served::{Served, archive};

const ERROR: &str = "user.h5fs.error";

/// Runs a Python program in a new directory.
fn written(code: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut program = Command::new(python());
    run(program.args(["-c", code]).current_dir(&directory), SOON).success();
    directory
}

/// Writes `links.h5`, with chains of soft links to a group or to the root, and with external links.
/// Some of the external links lead to missing objects in `other.h5` or to missing files.
fn linked() -> tempfile::TempDir {
    written(
        r#"
import h5py
with h5py.File('other.h5', 'w') as f:
    f['d'] = 1.0
    f['g/d'] = 2.0
with h5py.File('links.h5', 'w', libver='latest') as f:
    f['d'], f['g/h/d'] = 1.0, 2.0
    for where in ('l', 'g/l'):
        group = f.create_group(where)
        paths = ['/', '.', './', '/g', '/g/h', '/g/l/.', '/d', '/g/h/d', '/nothing']
        for number, path in enumerate(paths):
            group[f's{number}'] = h5py.SoftLink(path)
            group[f'chain{number}'] = h5py.SoftLink(f'/{where}/s{number}')
            group[f'inner{number}'] = h5py.SoftLink(f'/{where}/s{number}/d')
        for number, path in enumerate(['/', '/d', '/g', '/g/d', '/nothing']):
            group[f'e{number}'] = h5py.ExternalLink('other.h5', path)
            group[f'to_e{number}'] = h5py.SoftLink(f'/{where}/e{number}')
        group['no_file'] = h5py.ExternalLink('nothing.h5', '/d')
"#,
    )
}

/// Returns everything in the view trees, except the views of other files.
fn views(mount: &Mount) -> impl Iterator<Item = PathBuf> {
    let all = tree(&mount.at(".h5fs")).into_iter();
    let external = mount.at(".h5fs/external");
    all.filter(move |path| !path.starts_with(&external))
}

#[test]
fn links_in_views_lead_to_files() {
    let directory = linked();
    let mount = Mount::new(&directory.path().join("links.h5"));
    let links: Vec<PathBuf> = views(&mount).filter(|path| path.is_symlink()).collect();
    let dangling: Vec<_> = links.iter().filter(|path| !path.exists()).collect();
    assert!(dangling.is_empty(), "{dangling:?}");
    // A chain of links to a group leads to the same document as the group itself.
    for (link, own) in [
        ("ndl/l/chain1.yaml", "ndl/l.yaml"),
        ("ndl/l/chain3.yaml", "ndl/g.yaml"),
        ("ndl/g/l/chain5.json", "ndl/g/l.json"),
        ("html/l/chain0.html", "html/index.html"),
        ("html/g/l/s1.html", "html/g/l.html"),
        ("npy/l/inner4.npy", "npy/g/h/d.npy"),
        ("npy/l/to_e1.npy", "external/other.h5/.h5fs/npy/d.npy"),
    ] {
        let [link, own] = [link, own].map(|path| mount.at(".h5fs").join(path));
        assert!(
            links.contains(&link) || link.starts_with(mount.at(".h5fs/npy/l")),
            "{link:?}"
        );
        let read = |path: &Path| fs::read(path).expect("a document");
        assert_eq!(read(&link), read(&own), "{}", link.display());
    }
}

/// Returns the references on a page, without references to other sites.
fn references(page: &str) -> Vec<Vec<u8>> {
    let parts = [" href=\"", " src=\""].map(|start| page.split(start).skip(1));
    let references = parts
        .into_iter()
        .flatten()
        .filter_map(|rest| rest.split('"').next());
    let own = references.filter(|text| !text.starts_with("data:") && !text.starts_with("http"));
    own.map(decoded).filter(|path| !path.is_empty()).collect()
}

/// Decodes the path of a reference.
fn decoded(reference: &str) -> Vec<u8> {
    let path = reference.split(['#', '?']).next().unwrap_or_default();
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
        bytes.extend(rest.as_bytes());
    }
    bytes
}

#[test]
fn links_on_pages_lead_to_files() {
    let directory = linked();
    let mount = Mount::new(&directory.path().join("links.h5"));
    let mut count = 0;
    // References do not lead over symbolic links, because the path of a page is the path of its
    // object.
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "html");
    for path in views(&mount).filter(|path| is_page(path) && !path.is_symlink()) {
        let page = fs::read_to_string(&path).expect("a page");
        let above = path.parent().expect("a directory");
        for reference in references(&page) {
            let target = above.join(std::ffi::OsString::from_vec(reference));
            assert!(
                target.exists(),
                "{} -> {}",
                path.display(),
                target.display()
            );
            count += 1;
        }
    }
    assert!(count >= 100, "{count}");
    let page = fs::read_to_string(mount.at(".h5fs/html/l.html")).expect("a page");
    let cells = ["e1", "e3", "e4", "no_file"].map(|name| page.contains(&format!("\">{name}</a>")));
    assert_eq!(cells, [true, true, false, false], "{page}");
    assert!(page.contains("other.h5:/nothing") && page.contains("nothing.h5:/d"));
}

#[test]
fn each_view_that_cannot_be_read_says_why() {
    let directory = written(
        r#"
import h5py, numpy
noise = numpy.random.default_rng(1).integers(0, 256, (3, 64, 64), 'u1')
with h5py.File('stack.h5', 'w', libver='latest') as f:
    f['good'] = noise
    bad = f.create_dataset('bad', data=noise, chunks=(1, 64, 64), compression='gzip')
    chunk = bad.id.get_chunk_info(1)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1, 64, 64))
    plist.set_filter(300, h5py.h5z.FLAG_OPTIONAL, (1,))
    h5py.h5d.create(f.id, b'unknown', h5py.h5t.STD_U8LE, h5py.h5s.create_simple((3, 64, 64)), plist)
    f['unknown'].id.write_direct_chunk((1, 0, 0), bytes(noise[1]), 0)
with open('stack.h5', 'r+b') as file:
    file.seek(chunk.byte_offset)
    file.write(bytes(chunk.size))
"#,
    );
    let mount = Mount::new(&directory.path().join("stack.h5"));
    let said = |path: &str| {
        let path = mount.at(path);
        let read = fs::read(&path);
        (read.is_ok(), xattr(&path, ERROR).unwrap_or_default())
    };
    for file in [
        "NAME[1]",
        ".h5fs/npy/NAME[1].npy",
        ".h5fs/csv/NAME[1].csv",
        ".h5fs/json/NAME[1].json",
        ".h5fs/png/NAME/000001.png",
        ".h5fs/file.zarr/NAME/c/0/0/0",
    ] {
        let of = |name: &str| said(&file.replace("NAME", name));
        assert_eq!(of("good"), (true, String::new()), "{file}");
        let (is_read, why) = of("bad");
        assert!(!is_read && why.contains("chunk [1, 0, 0]"), "{file}: {why}");
        let (is_read, why) = of("unknown");
        assert!(!is_read && why.contains("300"), "{file}: {why}");
    }
    // Files next to the damage can be read.
    for file in ["bad[2]", ".h5fs/csv/bad[2].csv", ".h5fs/png/bad/000002.png"] {
        assert_eq!(said(file), (true, String::new()), "{file}");
    }
}

/// A browser starts at the root of a served directory, and can only follow links.
#[test]
fn the_page_of_joined_is_reached_from_the_root() {
    let (_kept, top) = archive(b"");
    fs::copy(fixture("tiny.latest.h5"), top.join("b.h5")).expect("copy");
    let served = Served::new(&[], &[&top]);
    let follow = |from: &str, reference: &str| -> (String, String) {
        let page = served.ask("GET", from, &["Accept: text/html"]);
        let page = String::from_utf8(page.ok()).expect("a page");
        let href = format!("href=\"{reference}\"");
        assert!(page.contains(&href), "{from}: no {href}: {page}");
        let to = format!("{}{}", from.rsplit_once('/').expect("a path").0, "/");
        let to = format!("{to}{}", reference.trim_start_matches("./"));
        let answer = served.ask("GET", &to, &["Accept: text/html"]);
        (to, answer.field("location").to_owned())
    };
    let (views, _) = follow("/", ".h5fs/");
    let (_, location) = follow(&views, "./joined/?page");
    assert_eq!(location, ".h5fs/html/index.html");
    let page = served.get("/.h5fs/joined/.h5fs/html/index.html").ok();
    assert!(String::from_utf8_lossy(&page).contains("<h1>joined</h1>"));
}
