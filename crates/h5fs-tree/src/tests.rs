//! Tests of the tree of a small graph, without a mount.

mod objects;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::model::array::Storage;
use h5fs_reader::model::datatype::{Charset, Class, StringPadding};
use h5fs_reader::model::{Datatype, LinkTarget};
use nix::errno::Errno;

use crate::fake::{FakeContainer, ROOT, byte_type};
use crate::requests::{ListingDetail, Requests};
use crate::{
    Caching, DirEntry, FileKind, Filesystem, Ino, LookupEntry, OpenedHandle, Options, SeekKind,
    errno,
};

pub(super) fn errno_of<T>(result: Result<T>) -> Errno {
    Errno::from_raw(errno::from_error(&result.err().expect("an error")))
}

pub(super) fn list(fs: &Filesystem, directory: Ino) -> Vec<(String, Ino, FileKind)> {
    let handle = fs.opendir(directory).unwrap().handle;
    let (mut entries, mut next, mut before) = (Vec::new(), 0, None);
    // A long listing is returned in parts.
    while before != Some(next) {
        before = Some(next);
        let read = fs.readdir(handle, next, &mut |entry| {
            let name = String::from_utf8_lossy(entry.name).into_owned();
            entries.push((name, entry.ino, entry.kind.unwrap()));
            next = entry.next;
            false
        });
        read.unwrap();
    }
    fs.release(handle);
    entries
}

pub(super) fn names(fs: &Filesystem, path: &str) -> Vec<String> {
    let directory = fs.resolve(path.as_bytes()).unwrap().ino;
    let names = list(fs, directory).into_iter().map(|(name, ..)| name);
    names.filter(|name| name != "." && name != "..").collect()
}

pub(super) fn text(fs: &Filesystem, path: &str) -> String {
    let entry = fs.resolve_link(path.as_bytes()).unwrap();
    assert_eq!(entry.attributes.kind, FileKind::Symlink, "{path}");
    let text = String::from_utf8(fs.readlink(entry.ino).unwrap()).unwrap();
    assert_eq!(entry.attributes.size, text.len() as u64);
    text
}

pub(super) fn content(fs: &Filesystem, path: &str) -> Result<Vec<u8>> {
    let handle = fs.open_file(fs.resolve(path.as_bytes())?.ino)?.handle;
    let bytes = fs.read(handle, 0, 1 << 20)?.to_vec();
    fs.release(handle);
    Ok(bytes)
}

pub(super) fn xattr(fs: &Filesystem, path: &str, name: &str) -> Result<String> {
    let ino = fs.resolve(path.as_bytes()).unwrap().ino;
    let value = fs.getxattr(ino, name.as_bytes())?;
    Ok(String::from_utf8(value).unwrap())
}

#[test]
fn a_small_tree() {
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_bytes(1600, 2, b"elements");
    fake.add_hard_link(ROOT, "run", 800);
    fake.add_hard_link(ROOT, "same", 1600);
    fake.add_hard_link(800, "temp", 1600);
    let fs = fake.into_filesystem();

    let root = list(&fs, fs.root());
    assert_eq!(root[0], (".".to_owned(), 1, FileKind::Directory));
    assert_eq!(root[1], ("..".to_owned(), 1, FileKind::Directory));
    assert_eq!(root[2], ("run".to_owned(), 800, FileKind::Directory));
    assert_eq!(root[3], ("same".to_owned(), 1600, FileKind::File));
    assert_eq!(list(&fs, 800)[1].1, 1);

    let temp = fs.resolve(b"run/temp").unwrap();
    assert_eq!(temp.ino, fs.resolve(b"/same").unwrap().ino);
    let stat = temp.attributes;
    assert_eq!((stat.size, stat.blocks, stat.links), (8, 1, 2));
    assert_eq!((stat.uid, stat.gid, stat.permissions), (1000, 100, 0o440));
    assert_eq!(stat.modified, (1_000_000_000, 5));
    let run = fs.resolve(b"run").unwrap().attributes;
    assert_eq!(
        (run.kind, run.links, run.permissions),
        (FileKind::Directory, 1, 0o550)
    );

    assert_eq!(content(&fs, "run/temp").unwrap(), b"elements");
    assert_eq!(errno_of(fs.resolve(b"run/none")), Errno::ENOENT);
    assert_eq!(errno_of(fs.resolve(b"same/x")), Errno::ENOTDIR);
    assert_eq!(errno_of(fs.lookup(1, &[b'n'; 256])), Errno::ENAMETOOLONG);
    assert_eq!(errno_of(fs.open_file(800)), Errno::EISDIR);
}

#[test]
fn options_change_owner_and_mode() {
    let fs = FakeContainer::new().mounted_with(&Options {
        uid: Some(7),
        gid: Some(8),
        umask: Some(0o027),
        ..Options::default()
    });
    let stat = fs.getattr(1).unwrap().attributes;
    assert_eq!((stat.uid, stat.gid, stat.permissions), (7, 8, 0o550));
}

#[test]
fn a_group_is_a_directory_at_one_path() {
    // A ring: /b/a, /b/a/b, and the root again. The shortest path is a group's directory.
    let mut fake = FakeContainer::new();
    fake.add_group(800, 2);
    fake.add_group(1600, 2);
    fake.add_hard_link(ROOT, "z", 800);
    fake.add_hard_link(ROOT, "b", 800);
    fake.add_hard_link(800, "a", 1600);
    fake.add_hard_link(1600, "b", 800);
    fake.add_hard_link(1600, "self", 1600);
    fake.add_hard_link(1600, "top", ROOT);
    let fs = fake.into_filesystem();

    assert_eq!(text(&fs, "z"), "b");
    assert_eq!(fs.resolve(b"b").unwrap().ino, 800);
    assert_eq!(text(&fs, "b/a/b"), "..");
    assert_eq!(text(&fs, "b/a/self"), ".");
    assert_eq!(text(&fs, "b/a/top"), "../..");
    assert_eq!(fs.resolve(b"z/a/top/b/a/self/b/a").unwrap().ino, 1600);
    let kinds: Vec<_> = list(&fs, 1600).iter().map(|entry| entry.2).collect();
    assert_eq!(kinds[2..], [FileKind::Symlink; 3]);
}

#[test]
fn with_a_wrong_link_count_the_first_name_is_canonical() {
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_group(1600, 1);
    fake.add_hard_link(ROOT, "a", 800);
    fake.add_hard_link(ROOT, "b", 1600);
    fake.add_hard_link(1600, "lie", 800);
    fake.add_hard_link(800, "up", 800);
    let fs = fake.into_filesystem();
    assert_eq!(fs.resolve(b"b/lie").unwrap().ino, 800);
    assert_eq!(text(&fs, "a"), "b/lie");
    assert_eq!(text(&fs, "b/lie/up"), ".");
    fs.forget(800, 100);
    assert_eq!(text(&fs, "a"), "b/lie");
}

#[test]
fn symbolic_links_resolve_inside() {
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_bytes(1600, 1, b"x");
    fake.add_hard_link(ROOT, "g", 800);
    fake.add_hard_link(800, "data", 1600);
    fake.add_hard_link(800, "..", 1600);
    fake.add_soft_link(800, "absolute", "/g/data");
    fake.add_soft_link(800, "relative", "./data");
    fake.add_soft_link(800, "root", "/");
    fake.add_soft_link(800, "here", ".");
    fake.add_soft_link(800, "dotdot", "..");
    fake.add_soft_link(800, "dangling", "/no/../where");
    fake.add_soft_link(800, "long", &"x/".repeat(3000));
    let external = LinkTarget::External {
        file: b"other.h5".to_vec(),
        path: b"/a/b".to_vec(),
    };
    fake.add_link(800, "external", external);
    fake.add_link(800, "user", LinkTarget::UserDefined(187));
    let fs = fake.into_filesystem();

    assert_eq!(text(&fs, "g/absolute"), "../g/data");
    assert_eq!(text(&fs, "g/relative"), "data");
    assert_eq!(text(&fs, "g/root"), "..");
    assert_eq!(text(&fs, "g/here"), ".");
    assert_eq!(text(&fs, "g/dotdot"), "%2E%2E");
    assert_eq!(text(&fs, "g/dangling"), "../no/%2E%2E/where");
    assert_eq!(text(&fs, "g/external"), "other.h5:/a/b");
    assert_eq!(text(&fs, "g/user"), "user-defined link, class 187");
    for path in [
        "g/absolute",
        "g/relative",
        "g/dotdot",
        "g/here/data",
        "g/root/g/data",
    ] {
        assert_eq!(content(&fs, path).unwrap(), b"x", "{path}");
    }
    assert_eq!(errno_of(fs.resolve(b"g/dangling")), Errno::ENOENT);
    let long = fs.resolve_link(b"g/long").unwrap();
    assert_eq!(errno_of(fs.readlink(long.ino)), Errno::ENAMETOOLONG);
    // The number is the same in every mount. The kernel never requests the attributes of a link.
    assert_eq!(fs.listxattr(long.ino).unwrap(), Vec::<Vec<u8>>::new());
    assert!(long.ino >= 1 << 63);
}

#[test]
fn damage_affects_only_its_object() {
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_bytes(1600, 1, b"x");
    fake.add_broken(2400);
    let unknown = Err(Error::unsupported("filter 32099", 640));
    fake.add_array(3200, 1, byte_type(), 5, unknown);
    let string = Datatype {
        size: 16,
        class: Class::VariableString {
            padding: StringPadding::NullTerminated,
            charset: Charset::Utf8,
        },
    };
    fake.add_array(4000, 1, string, 5, Ok(Storage::Fill));
    fake.add_hard_link(ROOT, "torn", 800);
    fake.add_hard_link(800, "before", 1600);
    fake.add_hard_link(800, "after", 1600);
    fake.damage_index(800, 1);
    fake.add_hard_link(ROOT, "good", 1600);
    fake.add_hard_link(ROOT, "header", 2400);
    fake.add_hard_link(ROOT, "absent", 9999);
    fake.add_hard_link(ROOT, "nowhere", 0);
    fake.add_hard_link(ROOT, "filter", 3200);
    fake.add_hard_link(ROOT, "strings", 4000);
    let damaged = LinkTarget::Damaged(Error::corrupt("link message: size", 77));
    fake.add_link(ROOT, "link", damaged);
    let fs = fake.into_filesystem();

    assert_eq!(names(&fs, "/").len(), 8);
    assert_eq!(content(&fs, "good").unwrap(), b"x");
    for path in ["header", "absent", "nowhere", "link"] {
        let entry = fs.resolve(path.as_bytes()).unwrap();
        let stat = entry.attributes;
        assert_eq!((stat.kind, stat.size), (FileKind::File, 0), "{path}");
        assert_eq!(errno_of(fs.open_file(entry.ino)), Errno::EIO, "{path}");
        let list = fs.listxattr(entry.ino).unwrap();
        assert_eq!(list, [b"user.h5fs.error".to_vec()], "{path}");
    }
    let header = xattr(&fs, "header", "user.h5fs.error").unwrap();
    assert!(header.starts_with("object header: bad signature"));
    let filter = fs.resolve(b"filter").unwrap();
    assert_eq!((filter.attributes.size, filter.attributes.blocks), (5, 1));
    // Strings that were never written are null and shown as empty lines.
    assert_eq!(content(&fs, "strings").unwrap(), b"\n\n\n\n\n");
    assert_eq!(errno_of(content(&fs, "filter")), Errno::EOPNOTSUPP);
    assert!(xattr(&fs, "filter", "user.h5fs.error").is_ok());

    let torn = fs.resolve(b"torn").unwrap().ino;
    let handle = fs.opendir(torn).unwrap().handle;
    let mut seen = Vec::new();
    fs.readdir(handle, 0, &mut |entry| {
        seen.push((entry.name.to_vec(), entry.next));
        false
    })
    .unwrap();
    assert_eq!(seen[2], (b"before".to_vec(), 3));
    for _ in 0..2 {
        assert_eq!(errno_of(fs.readdir(handle, 3, &mut |_| false)), Errno::EIO);
    }
    assert!(xattr(&fs, "torn", "user.h5fs.error").is_ok());
}

/// Lists a group and a dataset that fail once, in a listing that the kernel would cache.
#[test]
fn temporarily_unreadable_objects_are_listed_again() {
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_bytes(1600, 1, b"x");
    fake.add_bytes(2400, 1, b"y");
    fake.add_hard_link(ROOT, "g", 800);
    fake.add_hard_link(ROOT, "x", 1600);
    fake.add_hard_link(ROOT, "y", 2400);
    fake.fail_reads(800);
    fake.fail_reads(1600);
    let is_failing = Arc::clone(&fake.is_failing);
    let fs = fake.into_filesystem();
    let listed = |path: &str| {
        let directory = fs.resolve(path.as_bytes()).unwrap().ino;
        let OpenedHandle {
            handle, caching, ..
        } = fs.opendir(directory).unwrap();
        let is_lasting = caching == Caching::UntilChanged;
        let mut listed = Vec::new();
        for plus in [false, true] {
            let mut add = |name: &[u8], kind: Option<FileKind>| {
                listed.push((String::from_utf8(name.to_vec()).unwrap(), kind.unwrap()));
                false
            };
            if !plus {
                fs.readdir(handle, 2, &mut |at| add(at.name, at.kind))
            } else {
                fs.readdir_plus(handle, 2, &mut |at, _| add(at.name, at.kind))
            }
            .unwrap();
        }
        fs.release(handle);
        (is_lasting, listed)
    };
    let twice = |names: &[(&str, FileKind)]| {
        let names = names.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
        let names: Vec<_> = names.collect();
        [names.clone(), names].concat()
    };
    let whole = [
        ("g", FileKind::Directory),
        ("x", FileKind::File),
        ("y", FileKind::File),
    ];
    let whole_npy = [
        ("g", FileKind::Directory),
        ("x.npy", FileKind::File),
        ("y.npy", FileKind::File),
    ];
    for _ in 0..2 {
        assert_eq!(listed("/"), (true, twice(&whole)));
        assert_eq!(listed(".h5fs/npy"), (true, twice(&whole_npy)));
        is_failing.store(true, Ordering::SeqCst);
        // A recursive walk encounters the error.
        let unsure = [
            ("g", FileKind::Directory),
            ("x", FileKind::Directory),
            ("y", FileKind::File),
        ];
        assert_eq!(listed("/"), (true, twice(&unsure)));
        assert_eq!(listed("/"), (false, twice(&unsure)));
        let unsure_npy = [unsure[0], unsure[1], whole_npy[2]];
        assert_eq!(listed(".h5fs/npy"), (true, twice(&unsure_npy)));
        for path in ["g", "x", ".h5fs/npy/g", ".h5fs/npy/x", ".h5fs/npy/x.npy"] {
            assert_eq!(errno_of(fs.resolve(path.as_bytes())), Errno::EIO, "{path}");
        }
        assert_eq!(content(&fs, "y").unwrap(), b"y");
        is_failing.store(false, Ordering::SeqCst);
        // The kernel discards its cached listing, and caches the next one.
        assert_eq!(listed("/"), (false, twice(&whole)));
        assert_eq!(listed(".h5fs/npy"), (false, twice(&whole_npy)));
        assert_eq!(
            fs.resolve(b"g").unwrap().attributes.kind,
            FileKind::Directory
        );
        assert_eq!(content(&fs, "x").unwrap(), b"x");
    }
}

/// Objects that cannot be read because the request is postponed are not listed as damaged; the next
/// attempt reads them.
#[test]
fn a_postponed_request_reports_no_unread_object() {
    let mut fake = FakeContainer::new();
    for (id, name) in [(800, "a"), (801, "b"), (802, "c")] {
        fake.add_bytes(id, 1, b"data");
        fake.add_hard_link(ROOT, name, id);
    }
    fake.heavy.push(801);
    let fs = fake.into_filesystem();
    let ino = fs.resolve(b"/b").unwrap().ino;
    let root = fs.opendir(fs.root()).unwrap().handle;
    let quick = || CancelToken::default().with_slot(&Arc::default());
    let listed = |cookie, cancel: &CancelToken| {
        let mut names = Vec::new();
        let take = &mut |entry: DirEntry<'_>, _: Option<&LookupEntry>| {
            names.push((entry.name.to_vec(), entry.kind.unwrap()));
            false
        };
        let listed = fs.list_with_cancel(root, cookie, ListingDetail::Names, take, cancel);
        listed.map(|()| names)
    };
    assert_eq!(
        listed(2, &quick()),
        Ok(vec![(b"a".to_vec(), FileKind::File)])
    );
    assert!(listed(3, &quick()).unwrap_err().is_cancelled());
    assert!(
        fs.listxattr_with_cancel(ino, &quick())
            .unwrap_err()
            .is_cancelled()
    );
    let fault = |cancel: &CancelToken| fs.getxattr_with_cancel(ino, b"user.h5fs.error", cancel);
    assert!(fault(&quick()).unwrap_err().is_cancelled());

    let heavy = CancelToken::default();
    let all = listed(2, &heavy).unwrap();
    assert_eq!(
        all[..3],
        [b"a", b"b", b"c"].map(|name| (name.to_vec(), FileKind::File))
    );
    assert_eq!(errno_of(fault(&heavy)), Errno::ENODATA);
}

#[test]
fn the_work_of_a_request_is_limited() {
    let mut fake = FakeContainer::new();
    fake.add_bytes(1600, 1, b"x");
    fake.add_hard_link(ROOT, "x", 1600);
    fake.exceed_budget(1600);
    let is_failing = Arc::clone(&fake.is_failing);
    let fs = fake.into_filesystem();
    let found = fs.resolve(b"x").unwrap();
    is_failing.store(true, Ordering::SeqCst);
    let too_much = |error: Option<Error>| matches!(error, Some(Error::BudgetExceeded { .. }));
    assert!(too_much(fs.lookup(1, b"x").err()));
    assert!(too_much(fs.getattr(found.ino).err()));
    assert!(too_much(fs.open_file(found.ino).err()));
    is_failing.store(false, Ordering::SeqCst);
    assert_eq!(content(&fs, "x").unwrap(), b"x");
}

#[test]
fn listings_continue_at_any_cookie() {
    let mut fake = FakeContainer::new();
    for number in 0..40_u64 {
        fake.add_bytes(800 + number, 1, b"x");
        fake.add_hard_link(ROOT, format!("n{number}"), 800 + number);
    }
    let fs = fake.into_filesystem();
    let handle = fs.opendir(1).unwrap().handle;
    let mut cookie = 0;
    let mut names = Vec::new();
    loop {
        let mut room = 3;
        let before = cookie;
        fs.readdir_plus(handle, cookie, &mut |listed, entry| {
            if room == 0 {
                return true;
            }
            room -= 1;
            assert_eq!(entry.unwrap().attributes.ino, listed.ino);
            names.push(String::from_utf8(listed.name.to_vec()).unwrap());
            cookie = listed.next;
            false
        })
        .unwrap();
        if cookie == before {
            break;
        }
    }
    assert_eq!(names.len(), 42);
    assert_eq!(names[41], "n39");
    let mut first = None;
    fs.readdir(handle, 2 + 17, &mut |entry| {
        first.get_or_insert(entry.name.to_vec());
        false
    })
    .unwrap();
    assert_eq!(first.unwrap(), b"n17");
    // Each of the forty was counted once.
    fs.forget(800 + 17, 1);
    assert_eq!(errno_of(fs.getattr(800 + 17)), Errno::ESTALE);
}

#[test]
fn entries_after_a_removed_link_are_listed_once() {
    let mut fake = FakeContainer::new();
    fake.add_bytes(800, 1, b"x");
    for name in ["a", "lost", "b", "c"] {
        fake.add_hard_link(ROOT, name, 800);
    }
    fake.remove_link(ROOT, 1);
    assert_eq!(names(&fake.into_filesystem(), "/"), ["a", "b", "c"]);
}

#[test]
fn hostile_names_can_be_looked_up() {
    let long = [b'n'; 300];
    let hostile: [&[u8]; 10] = [
        b"", b".", b"..", b"a/b", b"a\0", b"%2F", b"%", b".h5fs", b"\xff\n", &long,
    ];
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_hard_link(ROOT, "g", 800);
    for (number, name) in (1600..).zip(hostile) {
        for group in [ROOT, 800] {
            fake.add_bytes(number, 2, b"x");
            fake.add_hard_link(group, name, number);
        }
    }
    let fs = fake.into_filesystem();
    for directory in [1, fs.resolve(b"g").unwrap().ino] {
        let handle = fs.opendir(directory).unwrap().handle;
        let mut shown = Vec::new();
        fs.readdir(handle, 2, &mut |entry| {
            shown.push((entry.name.to_vec(), entry.ino));
            false
        })
        .unwrap();
        for (name, ino) in shown.into_iter().filter(|(name, _)| name != b"g") {
            assert_eq!(fs.lookup(directory, &name).unwrap().ino, ino);
            let path = fs.getxattr(ino, b"user.h5fs.path").unwrap();
            let place = usize::try_from(ino - 1600).unwrap();
            assert_eq!(path, [b"/", hostile[place]].concat());
        }
        assert_eq!(errno_of(fs.lookup(directory, b"%2E%2e")), Errno::ENOENT);
    }
    let views = fs.resolve(b".h5fs").unwrap();
    assert_eq!(views.attributes.kind, FileKind::Directory);
    assert_eq!(
        names(&fs, ".h5fs")[..3],
        ["README.txt", "external", "status"]
    );
    let status = String::from_utf8(content(&fs, ".h5fs/status").unwrap()).unwrap();
    assert!(status.contains("source: fake.h5\n"), "{status}");
}

#[test]
fn extended_attributes_fit_the_kernel() {
    let mut fake = FakeContainer::new();
    fake.add_attribute(ROOT, b"units", b"K");
    fake.add_attribute(ROOT, b"h5fs.path", b"forged");
    fake.add_attribute(ROOT, b"", b"empty");
    fake.add_attribute(ROOT, b"nul\0", b"nul");
    fake.add_attribute(ROOT, &[b'n'; 251], b"long name");
    fake.add_attribute(ROOT, &[b'n'; 250], b"longest name");
    fake.add_attribute(ROOT, b"big", &vec![b'v'; 65_537]);
    fake.add_attribute(ROOT, b"biggest", &vec![b'v'; 65_536]);
    fake.add_group(800, 1);
    fake.add_hard_link(ROOT, "many", 800);
    for number in 0..1000 {
        let name = format!("{number:0>200}");
        fake.add_attribute(800, name.as_bytes(), b"");
    }
    let fs = fake.into_filesystem();
    let list = fs.listxattr(1).unwrap();
    let longest = [&b"user."[..], &[b'n'; 250]].concat();
    let wanted: [&[u8]; 4] = [b"user.h5fs.path", b"user.units", &longest, b"user.biggest"];
    assert_eq!(list, wanted);
    assert_eq!(xattr(&fs, "/", "user.units").unwrap(), "K");
    assert_eq!(xattr(&fs, "/", "user.h5fs.path").unwrap(), "/");
    assert_eq!(errno_of(xattr(&fs, "/", "user.big")), Errno::E2BIG);
    assert_eq!(errno_of(xattr(&fs, "/", "user.none")), Errno::ENODATA);
    let selinux = fs.getxattr(u64::MAX, b"security.selinux");
    assert_eq!(errno_of(selinux), Errno::EOPNOTSUPP);
    let many = fs.listxattr(fs.resolve(b"many").unwrap().ino).unwrap();
    let bytes: usize = many.iter().map(|name| name.len() + 1).sum();
    assert!(many.len() > 300 && bytes <= 65_536, "{bytes}");
}

#[test]
fn holes_contain_only_zeros() {
    let mut fake = FakeContainer::new();
    fake.add_array(800, 1, byte_type(), 1 << 40, Ok(Storage::Fill));
    fake.add_bytes(1600, 1, b"data");
    fake.add_array(2400, 1, byte_type(), 0, Ok(Storage::Empty));
    fake.add_hard_link(ROOT, "sparse", 800);
    fake.add_hard_link(ROOT, "data", 1600);
    fake.add_hard_link(ROOT, "empty", 2400);
    let fs = fake.into_filesystem();
    let sparse = fs.resolve(b"sparse").unwrap();
    assert_eq!(sparse.attributes.size, 1 << 40);
    assert_eq!(sparse.attributes.blocks, 0);
    let handle = fs.open_file(sparse.ino).unwrap().handle;
    assert_eq!(fs.lseek(handle, 10, SeekKind::Hole).unwrap(), 10);
    assert_eq!(errno_of(fs.lseek(handle, 10, SeekKind::Data)), Errno::ENXIO);
    let data = fs.resolve(b"data").unwrap().ino;
    let data = fs.open_file(data).unwrap().handle;
    assert_eq!(fs.lseek(data, 1, SeekKind::Data).unwrap(), 1);
    assert_eq!(fs.lseek(data, 1, SeekKind::Hole).unwrap(), 4);
    assert_eq!(errno_of(fs.lseek(data, 4, SeekKind::Hole)), Errno::ENXIO);
    assert_eq!(content(&fs, "empty").unwrap(), b"");
}

/// However often the source changes, only one of its states is in memory, whatever is open.
#[test]
fn old_states_are_removed_from_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("source.asdf");
    let write = |change: u64| {
        let tree = format!("#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n---\na: {change}\n...\n");
        std::fs::write(&path, tree).unwrap();
        let day = std::time::Duration::from_secs(86_400 * (1 + change));
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH + day)
            .unwrap();
    };
    write(0);
    let tree = Filesystem::open(&path, &Options::default()).unwrap();
    let (mut states, mut handles) = (Vec::new(), Vec::new());
    for change in 1..=20 {
        states.push(tree.mount.current_file().unwrap().downgrade_shared());
        let listing = tree.opendir(tree.root()).unwrap().handle;
        // Reads only a part, so that the listing stays in progress.
        tree.readdir(listing, 0, &mut |entry| entry.next > 1)
            .unwrap();
        let text = tree.open_file(tree.lookup(tree.root(), b"a").unwrap().ino);
        let text = text.unwrap().handle;
        assert_eq!(
            *tree.read(text, 0, 9).unwrap(),
            *format!("{}\n", change - 1).as_bytes()
        );
        handles.extend([listing, text]);
        write(change);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while tree.origin().modified.0 != 86_400 * (1 + change as i64) {
            assert!(std::time::Instant::now() < deadline, "it is not seen");
            tree.generation();
        }
    }
    let alive = states.iter().filter(|state| state.strong_count() > 0);
    assert_eq!(alive.count(), 0);
    for (number, handle) in handles.into_iter().enumerate() {
        let error = match number % 2 {
            0 => tree.readdir(handle, 0, &mut |_| false).unwrap_err(),
            _ => tree.read(handle, 0, 9).unwrap_err(),
        };
        assert_eq!(errno::from_error(&error), Errno::ESTALE as i32);
        tree.release(handle);
    }
}
