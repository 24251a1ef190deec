use std::sync::Arc;

use h5fs_reader::testing::eventually;
use nix::errno::Errno;

use crate::data_files::open_inode::OpenInode;
use crate::fake::{FakeContainer, ROOT};
use crate::limits;
use crate::state::handle::Handles;
use crate::tests::errno_of;
use crate::{Caching, Filesystem, Handle, Requests};

const SET: u64 = 200;

/// Creates a dataset with many attributes.
fn tree() -> Filesystem {
    let mut fake = FakeContainer::new();
    fake.add_bytes(SET, 1, b"bytes");
    fake.add_hard_link(ROOT, "set", SET);
    for i in 0..1000 {
        fake.add_attribute(SET, format!("{i:0200}").as_bytes(), b"a value");
    }
    fake.into_filesystem()
}

fn count_entries(tree: &Filesystem, handle: Handle, cookie: u64) -> usize {
    let (mut names, mut next, mut before) = (0, cookie, None);
    while before != Some(next) {
        before = Some(next);
        let mut visit = |entry: crate::DirEntry<'_>| {
            names += 1;
            next = entry.next;
            false
        };
        tree.readdir(handle, before.unwrap(), &mut visit).unwrap();
    }
    names
}

#[test]
fn the_number_of_open_handles_is_limited() {
    let tree = tree();
    let root = tree.root();
    let set = tree.resolve(b"/set").unwrap().ino;
    let open = |number: usize| match number % 2 {
        0 => tree.open_file(set),
        _ => tree.opendir(root),
    };
    let opened: Vec<Handle> = (0..limits::OPEN_HANDLES)
        .map(|number| open(number).unwrap().handle)
        .collect();
    assert_eq!(errno_of(tree.open_file(set)), Errno::EMFILE);
    assert_eq!(errno_of(tree.opendir(root)), Errno::EMFILE);
    assert_eq!(&tree.read(opened[0], 0, 10).unwrap()[..], b"bytes");
    tree.release(opened[1]);
    tree.open_file(set).unwrap();
    assert_eq!(errno_of(tree.opendir(root)), Errno::EMFILE);
    for handle in opened {
        tree.release(handle);
    }
    tree.opendir(root).unwrap();
}

#[test]
fn every_open_handle_counts_as_memory() {
    let tree = tree();
    let set = tree.resolve(b"/set").unwrap().ino;
    let file = tree.mount.current_file().unwrap();
    let first = tree.open_file(set).unwrap().handle;
    let free = || {
        let mut free = limits::OPEN_BYTES;
        while file.engine.reserve_memory(free).is_err() {
            free -= limits::OPEN_HANDLE / 4;
        }
        free
    };
    let others = file
        .engine
        .reserve_memory(free() - limits::OPEN_HANDLE / 2)
        .unwrap();
    assert_eq!(errno_of(tree.open_file(set)), Errno::ENOMEM);
    assert_eq!(errno_of(tree.opendir(tree.root())), Errno::ENOMEM);
    assert_eq!(&tree.read(first, 0, 10).unwrap()[..], b"bytes");
    drop(others);
    tree.open_file(set).unwrap();
}

#[test]
fn a_listing_continues_without_memory_for_its_position() {
    let tree = tree();
    let attributes = tree.resolve(b"/.h5fs/attrs/set").unwrap().ino;
    let file = tree.mount.current_file().unwrap();
    let handle = tree.opendir(attributes).unwrap().handle;
    let open = tree.mount.handles.get(handle).unwrap();
    let remembered = |least: bool| (open.content.own_bytes() > 200_000) == least;
    assert_eq!(count_entries(&tree, handle, 0), 1002);
    assert!(remembered(true));
    let others = file.engine.reserve_memory(limits::OPEN_BYTES - (300 << 10));
    let others = (
        others.unwrap(),
        file.engine.reserve_memory(50 << 10).unwrap(),
    );
    let second = tree.opendir(attributes).unwrap().handle;
    assert_eq!(count_entries(&tree, second, 0), 1002);
    assert_eq!(count_entries(&tree, second, 500), 502);
    let forgetful = tree.mount.handles.get(second).unwrap();
    assert_eq!(forgetful.content.own_bytes(), 0);
    assert!(remembered(true));
    drop(others);
    assert_eq!(count_entries(&tree, second, 1000), 2);
    assert!(forgetful.content.own_bytes() > 200_000);
}

/// The facts for the kernel are determined when the handle is created. If a later call failed with
/// `ESTALE`, the kernel would never learn of the handle and never release it.
#[test]
fn a_change_during_open_leaves_no_handle() {
    let directory = tempfile::tempdir().unwrap();
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_bytes(SET, 1, b"bytes");
    fake.add_hard_link(ROOT, "group", 800);
    fake.add_hard_link(ROOT, "set", SET);
    let tree = FakeContainer::mounted_among(directory.path(), vec![("main", fake)]);
    let group = tree.resolve(b"/group").unwrap().ino;
    let set = tree.resolve(b"/set").unwrap().ino;
    let opened = [tree.opendir(group).unwrap(), tree.open_file(set).unwrap()];
    let [listing, file] = opened.map(|opened| opened.handle);
    // The content is the same, so that the fake recognizes it, but the file is another one.
    std::fs::write(directory.path().join("next"), "main").unwrap();
    std::fs::rename(directory.path().join("next"), directory.path().join("main")).unwrap();
    eventually("the change is seen", || tree.generation() == Some(1));
    assert_eq!(errno_of(tree.getattr(group)), Errno::ESTALE);
    // Every opened handle has its caching mode and can be released.
    for opened in opened {
        assert_ne!(opened.caching, Caching::Never);
    }
    assert_eq!(
        errno_of(tree.readdir(listing, 0, &mut |_| false)),
        Errno::ESTALE
    );
    assert_eq!(errno_of(tree.read(file, 0, 10)), Errno::ESTALE);
    assert_eq!(tree.mount.handles.len(), 2);
    tree.release(listing);
    tree.release(file);
    assert_eq!(tree.mount.handles.len(), 0);
}

/// An open during a change of the source must not keep the old state in memory.
#[test]
fn no_handle_is_opened_in_an_old_state() {
    let tree = tree();
    let file = tree.mount.current_file().unwrap();
    let open = || OpenInode::directory(1, Arc::clone(&file)).unwrap();
    let handles = Handles::default();
    let insert = |handle| handles.insert(handle, open(), Caching::Never);
    let handle = insert(handles.new_handle()).unwrap().handle;
    file.end();
    handles.mark_all_stale();
    assert_eq!(errno_of(insert(handles.new_handle())), Errno::ESTALE);
    assert_eq!(errno_of(handles.replace(handle, open())), Errno::ESTALE);
    assert_eq!(errno_of(handles.get(handle)), Errno::ESTALE);
}

/// The bytes may belong to the next state before that state is shown.
#[test]
fn a_read_that_ends_after_a_change_is_stale() {
    let tree = tree();
    let set = tree.resolve(b"/set").unwrap().ino;
    let handle = tree.open_file(set).unwrap().handle;
    assert!(tree.read(handle, 0, 10).is_ok());
    tree.mount.current_file().unwrap().end();
    assert_eq!(errno_of(tree.read(handle, 0, 10)), Errno::ESTALE);
}
