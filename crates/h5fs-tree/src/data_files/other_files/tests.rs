//! Tests with small graphs in several files that link to each other.

use std::fs;

use h5fs_reader::model::NodeId;
use h5fs_reader::source::local::audience::Readers;
use h5fs_reader::source::local::file::FileSource;
use h5fs_reader::source::open::OpenSource;
use nix::errno::Errno;

use crate::data_files::other_files::state::OtherFilesState;
use crate::fake::{FakeContainer, ROOT};

use crate::state::inode::{Inode, NodeType, node_number};
use crate::state::inodes::Inodes;
use crate::tests::{content, errno_of, list, names, text, xattr};
use crate::{FileKind, Filesystem, Requests};

/// Creates the files `main` and `sub/part`, whose objects have the same node IDs, with external
/// links in both directions.
fn pair(directory: &std::path::Path) -> Filesystem {
    let mut main = FakeContainer::new();
    main.add_group(800, 1);
    main.add_bytes(1600, 1, b"main");
    main.add_hard_link(ROOT, "g", 800);
    main.add_hard_link(800, "data", 1600);
    main.add_external_link(800, "part", "sub/part", "/");
    main.add_external_link(800, "deep", "sub/../sub/part", "/./g/.h5fs");
    main.add_external_link(800, "self", "main", "g/data");
    main.add_external_link(800, "alias", "alias", "/");
    main.add_external_link(ROOT, "absent", "absent", "/x");
    main.add_external_link(ROOT, "climbs", "../main", "/x");
    main.add_external_link(ROOT, "text", "text", "/");
    let mut part = FakeContainer::new();
    part.add_group(800, 2);
    part.add_bytes(1600, 1, b"part");
    part.add_attribute(800, b"units", b"K");
    part.add_hard_link(ROOT, "g", 800);
    part.add_hard_link(ROOT, "z", 800);
    part.add_hard_link(800, ".h5fs", 1600);
    part.add_soft_link(800, "soft", "/g/.h5fs");
    part.add_external_link(800, "back", "../main", "/g");
    part.add_external_link(800, "own", "part", "/g");
    part.add_external_link(800, "beside", "main", "/g");
    let fs = FakeContainer::mounted_among(directory, vec![("main", main), ("sub/part", part)]);
    fs::write(directory.join("text"), "neither").unwrap();
    fs
}

#[test]
fn other_files_are_mounted_in_turn() {
    let directory = tempfile::tempdir().unwrap();
    let fs = pair(directory.path());
    assert_eq!(text(&fs, "g/part"), "../.h5fs/external/sub%2Fpart");
    assert_eq!(text(&fs, "g/deep"), "../.h5fs/external/sub%2Fpart/g/.h5fs");
    assert_eq!(text(&fs, "g/self"), "data");
    assert_eq!(text(&fs, "absent"), "absent:/x");
    assert_eq!(text(&fs, "climbs"), "../main:/x");
    assert_eq!(names(&fs, ".h5fs/external"), ["sub%2Fpart"]);

    assert_eq!(names(&fs, "g/part"), ["g", "z"]);
    assert_eq!(content(&fs, "g/deep").unwrap(), b"part");
    assert_eq!(content(&fs, "g/part/g/soft").unwrap(), b"part");
    assert_eq!(content(&fs, "g/self").unwrap(), b"main");
    assert_eq!(text(&fs, "g/part/z"), "g");
    assert_eq!(xattr(&fs, "g/part/z", "user.units").unwrap(), "K");
    assert_eq!(xattr(&fs, "g/deep", "user.h5fs.path").unwrap(), "/g/.h5fs");

    let [main, part] = ["g/data", "g/deep"].map(|path| fs.resolve(path.as_bytes()).unwrap());
    assert_eq!(main.ino, 1600);
    assert!(part.ino > 1 << 62 && part.ino < 1 << 63);
    let group = fs.resolve(b"g/part/g").unwrap();
    assert_eq!(list(&fs, group.ino)[2].1, part.ino);
    let external = fs.resolve(b".h5fs/external").unwrap();
    let root = fs.resolve(b"g/part").unwrap();
    assert_eq!(
        fs.mount.find_inode(root.ino).unwrap().1.parent,
        external.ino
    );
}

#[test]
fn cyclic_links_between_files_lead_to_one_directory() {
    let directory = tempfile::tempdir().unwrap();
    let fs = pair(directory.path());
    assert_eq!(text(&fs, "g/part/g/back"), "../../../../g");
    assert_eq!(text(&fs, "g/part/g/own"), ".");
    // The links of another file start in that file's own directory.
    assert_eq!(text(&fs, "g/part/g/beside"), "main:/g");
    let around = "g/part/g/back/part/g/own/back/data";
    assert_eq!(fs.resolve(around.as_bytes()).unwrap().ino, 1600);

    std::os::unix::fs::symlink("part", directory.path().join("sub/alias")).unwrap();
    for (spelling, own) in [
        ("sub%2Falias", "sub%2Fpart"),
        ("main", "../.."),
        (".%2Fmain", "../.."),
    ] {
        assert_eq!(text(&fs, &format!(".h5fs/external/{spelling}")), own);
    }
    assert_eq!(fs.resolve(b".h5fs/external/main").unwrap().ino, fs.root());
}

#[test]
fn an_alias_in_another_directory_is_a_separate_directory() {
    let directory = tempfile::tempdir().unwrap();
    let fs = pair(directory.path());
    std::os::unix::fs::symlink("sub/part", directory.path().join("alias")).unwrap();
    assert_eq!(names(&fs, ".h5fs/external/alias"), ["g", "z"]);
    // Files next to this file are found as well.
    assert_eq!(
        text(&fs, ".h5fs/external/alias/g/own"),
        "../../sub%2Fpart/g"
    );
    assert_eq!(text(&fs, ".h5fs/external/alias/g/beside"), "../../../../g");
}

#[test]
fn an_unreadable_file_is_an_error_at_its_link() {
    let directory = tempfile::tempdir().unwrap();
    let fs = pair(directory.path());
    assert_eq!(text(&fs, "text"), ".h5fs/external/text");
    assert_eq!(errno_of(fs.resolve(b"text")), Errno::EIO);
    let missing = fs.resolve(b".h5fs/external/missing");
    assert_eq!(errno_of(missing), Errno::ENOENT);
    let own = directory.path().file_name().unwrap().to_str().unwrap();
    let outside = format!(".h5fs/external/..%2F{own}%2Fmain");
    assert_eq!(errno_of(fs.resolve(outside.as_bytes())), Errno::ENOENT);
    let kinds: Vec<_> = list(&fs, fs.root()).iter().map(|entry| entry.2).collect();
    assert_eq!(kinds[3..], [FileKind::Symlink; 3]);

    // A file that is created later is found, and the kernel must forget the link's old text.
    let before = fs.resolve_link(b"absent").unwrap();
    assert!(!before.is_cacheable);
    fs::write(directory.path().join("absent"), "sub/part").unwrap();
    assert_eq!(text(&fs, "absent"), ".h5fs/external/absent/x");
    assert_ne!(fs.resolve_link(b"absent").unwrap().ino, before.ino);
}

/// A file that no link has named is invisible, whatever its content.
#[test]
fn files_without_a_link_do_not_exist() {
    let directory = tempfile::tempdir().unwrap();
    let fs = pair(directory.path());
    fs::write(directory.path().join("unnamed"), "sub/part").unwrap();
    fs::create_dir(directory.path().join("directory")).unwrap();
    for name in ["unnamed", ".%2Funnamed", "sub%2F..%2Funnamed", "directory"] {
        let found = fs.resolve(format!(".h5fs/external/{name}").as_bytes());
        assert_eq!(errno_of(found), Errno::ENOENT, "{name}");
    }
    // The missing names were searched in all links, none of them read before.
    let mut named = names(&fs, ".h5fs/external");
    named.sort();
    assert_eq!(named, ["sub%2Fpart", "text"]);
}

/// A chain of files, each named by the previous one. The limit applies to the number of files
/// searched.
#[test]
fn the_number_of_searched_files_is_limited() {
    let directory = tempfile::tempdir().unwrap();
    let count = usize::try_from(crate::limits::SEARCHED_FILES).unwrap() + 3;
    let name = |number: usize| format!("f{number}");
    let mut files = Vec::new();
    for number in 0..count {
        let mut file = FakeContainer::new();
        file.add_external_link(ROOT, "next", &name(number + 1), "/");
        files.push((name(number), file));
    }
    let files = files
        .iter_mut()
        .map(|(name, file)| (&name[..], std::mem::take(file)));
    let fs = FakeContainer::mounted_among(directory.path(), files.collect());
    let find = |number| fs.resolve(format!(".h5fs/external/{}", name(number)).as_bytes());
    find(1).unwrap();
    // A search that exceeds its time limit continues in the next one.
    let far = (0..20).map(|_| find(count - 2)).find(Result::is_ok);
    assert!(far.is_some());
    assert_eq!(errno_of(find(count - 1)), Errno::ENOENT);
}

#[test]
fn a_changed_file_gets_new_inodes() {
    let directory = tempfile::tempdir().unwrap();
    let fs = pair(directory.path());
    let old = fs.resolve(b"g/deep").unwrap();
    let handle = fs.open_file(old.ino).unwrap().handle;
    // The content is the same, but that is unknown before it is read.
    fs::remove_file(directory.path().join("sub/part")).unwrap();
    fs::write(directory.path().join("sub/part"), "sub/part").unwrap();
    assert_eq!(errno_of(fs.read(handle, 0, 4)), Errno::ESTALE);
    assert_eq!(content(&fs, "g/deep").unwrap(), b"part");
    let new = fs.resolve(b"g/deep").unwrap();
    assert_ne!(new.ino, old.ino);
    assert_eq!(errno_of(fs.getattr(old.ino)), Errno::ESTALE);
    assert_eq!(fs.getattr(new.ino).unwrap().attributes, new.attributes);
}

/// Sets the modification time of `path`, so that the file looks changed. Each `number` gives a
/// different time.
fn touch(path: &std::path::Path, number: u64) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(number);
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn repeated_changes_do_not_leak_inodes() {
    let directory = tempfile::tempdir().unwrap();
    let fs = pair(directory.path());
    let part = directory.path().join("sub/part");
    let mut known = Vec::new();
    for number in 0..50 {
        touch(&part, number);
        for path in ["g/part/g", "g/deep"] {
            let found = fs.resolve(path.as_bytes()).unwrap();
            fs.forget(found.ino, 1);
        }
        known.push(fs.mount.inodes.len());
    }
    assert_eq!(known[1], known[49], "{known:?}");
}

/// The number of an entry that the kernel still knows is not reused.
#[test]
fn the_numbers_of_trees_do_not_run_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("part");
    fs::write(&path, "part").unwrap();
    let (mut state, inodes) = (OtherFilesState::new(0), Inodes::new());
    let seen = [0, 1].map(|time| {
        touch(&path, time);
        FileSource::open(&path, None).unwrap().opened_state()
    });
    let number = |state: &mut OtherFilesState, change: usize| {
        let seen = &seen[change % 2];
        state
            .assign_file_number(b"part", (seen, Readers::Owner), &inodes)
            .unwrap()
    };
    state.find_or_add(b"part", b"part");
    let first = number(&mut state, 0);
    let known = Inode {
        node_type: NodeType::Group,
        generation: 0,
        tree: first,
        node: NodeId::for_test(96),
        parent: 1,
        name: b"part"[..].into(),
    };
    inodes.add_lookup(node_number(0, first, known.node), &known);
    let again = (1..=65_280).map(|change| number(&mut state, change)).last();
    assert_eq!(again, Some(first + 1));
    assert_eq!(inodes.len(), 1);
}

#[test]
fn files_that_are_closed_open_again() {
    let directory = tempfile::tempdir().unwrap();
    let count = crate::limits::OPEN_MOUNTED_FILES + 4;
    let names: Vec<String> = (0..count).map(|number| format!("f{number}")).collect();
    let mut main = FakeContainer::new();
    let mut files = Vec::new();
    for name in &names {
        main.add_external_link(ROOT, name, name, "/data");
        let mut fake = FakeContainer::new();
        fake.add_bytes(800, 1, name.as_bytes());
        fake.add_hard_link(ROOT, "data", 800);
        files.push((&name[..], fake));
    }
    files.insert(0, ("main", main));
    let fs = FakeContainer::mounted_among(directory.path(), files);
    let found = names
        .iter()
        .map(|name| fs.resolve(name.as_bytes()).unwrap());
    let found: Vec<_> = found.collect();
    for (name, entry) in names.iter().zip(found) {
        assert_eq!(fs.getattr(entry.ino).unwrap().attributes, entry.attributes);
        assert_eq!(content(&fs, name).unwrap(), name.as_bytes());
    }
}
