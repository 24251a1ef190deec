//! Files truncated at every byte. Each is refused, or its remaining parts are correct and its
//! missing parts are errors.

use nix::errno::Errno;

use super::hdf5::*;
use super::tree::*;
use super::values::heap_of;

/// A file whose root comes first, and the offset of the root's end. `contents` has the paths and
/// contents of all other objects, in the order of their offsets.
struct Whole {
    bytes: Vec<u8>,
    end_of_root: usize,
    contents: Vec<(&'static str, Vec<u8>)>,
}

/// Returns a file with groups, heaps, chunks and elements of each kind.
fn whole(is_old: bool) -> Whole {
    let names = ["plain", "old", "dense", "chunked", "sequence"];
    let links = |at: [u64; 5]| -> Vec<Message> {
        let pairs = names.iter().zip(at);
        pairs
            .map(|(name, at)| hard_link(name.as_bytes(), at))
            .collect()
    };
    let mut file = Hdf5::new();
    let root = file.put(&group(&links([0; 5])));
    let end_of_root = file.0.len();
    let plain = file.put_bytes(b"plainly");
    let at = [
        plain,
        put_old_group(&mut file, plain),
        put_dense_group(&mut file, plain),
        put_chunked(&mut file),
        put_sequence(&mut file),
    ];
    file.put_at(root, &group(&links(at)));
    let bytes = if is_old {
        file.rooted_old(root)
    } else {
        file.rooted(root)
    };
    let contents = vec![
        ("plain", b"plainly".to_vec()),
        ("old/one", b"plainly".to_vec()),
        ("dense/one", b"plainly".to_vec()),
        ("chunked", vec![0; 64]),
        ("sequence", b"bytes".to_vec()),
    ];
    Whole {
        bytes,
        end_of_root,
        contents,
    }
}

fn put_old_group(file: &mut Hdf5, child: u64) -> u64 {
    let data = file.put(b"\0\0\0\0\0\0\0\0one\0\0\0\0\0");
    let heap = file.put(&local_heap(16, data));
    let node = file.put(&symbols(1, &[(8, child, 0)]));
    let btree = file.put(&group_node(0, 1, &[0, node, 8]));
    file.put(&old_group(btree, heap))
}

fn put_dense_group(file: &mut Hdf5, child: u64) -> u64 {
    let link = link_body(b"one", 0, &child.to_le_bytes());
    let heap = heap_of(file, &link);
    let hash = h5fs_reader::wire::checksum::lookup3(b"one").to_le_bytes();
    let id = heap_id(DIRECT_PREFIX, link.len() as u64);
    let mut tree = Btree2 {
        record_type: 5,
        node_size: 512,
        record_size: 11,
        depth: 0,
        root: 0,
        used: 1,
        total: 1,
    };
    tree.root = file.put(&tree.leaf(&[&hash[..], &id[..7]].concat()));
    let tree = file.put(&tree.header());
    file.put(&dense_group(heap, tree))
}

fn put_chunked(file: &mut Hdf5) -> u64 {
    let stored = super::bounded::zeros_deflated(64);
    let chunk = file.put(&stored);
    let size = stored.len() as u64;
    let tree = file.put(&chunk_node(0, 1, &[size, 0, 0, chunk, size, 64, 0]));
    let layout = chunked(tree, &[64, 1]);
    file.put(&dataset(
        &[64],
        &byte_type(),
        layout,
        &[filters(&[(1, &[6])])],
    ))
}

fn put_sequence(file: &mut Hdf5) -> u64 {
    let heap = file.put(&collection(40, &[(1, 5, b"bytes")]));
    let data = file.put(&pointer(5, heap, 1));
    file.put(&dataset(&[1], &sequence_type(), contiguous(data, 16), &[]))
}

/// Returns whether the path has this content. Otherwise, a read must fail. An unreadable group is
/// not a directory.
#[track_caller]
fn is_read(tree: &Tree, path: &str, content: &[u8]) -> bool {
    match tree.content(path) {
        Ok(read) => {
            assert_eq!(read, content, "{path}");
            true
        }
        error => {
            let errno = errno_of(error);
            let refusals = [Errno::EIO, Errno::EOPNOTSUPP, Errno::ENOTDIR];
            assert!(refusals.contains(&errno), "{path}: {errno}");
            false
        }
    }
}

#[test]
fn cut_at_every_byte() {
    for is_old in [true, false] {
        let Whole {
            bytes,
            end_of_root,
            contents,
        } = whole(is_old);
        for length in 0..=bytes.len() {
            let Ok(filesystem) = soon(|| super::visit::filesystem(bytes[..length].to_vec())) else {
                assert!(length < end_of_root, "refused at {length}");
                continue;
            };
            assert!(length >= end_of_root, "half a root at {length}");
            let tree = Tree(filesystem);
            let is_read = contents
                .iter()
                .map(|(path, content)| is_read(&tree, path, content));
            let is_read: Vec<bool> = is_read.collect();
            // If an object is readable, all objects before it are readable. In the complete file,
            // all are readable.
            assert!(is_read.is_sorted_by(|before, behind| before >= behind));
            assert!(length < bytes.len() || is_read.iter().all(|is_read| *is_read));
        }
    }
}
