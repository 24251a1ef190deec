//! Small files that request much work. Work and memory must stay in proportion to the request.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use h5fs_tree::{FileKind, Filesystem, Options, Requests};
use nix::errno::Errno;

use super::hdf5::*;
use super::tree::*;

/// Returns a zlib stream of zeros, which is 160 times shorter than the zeros.
pub(crate) fn zeros_deflated(length: u32) -> Vec<u8> {
    // One literal zero, followed by copies of it. The fixed code needs 13 bits for 258 bytes.
    let mut bits = Bits::default();
    bits.put(1, 1); // last block
    bits.put(1, 2); // fixed codes
    bits.put_code(0x30, 8); // literal 0
    let mut left = length - 1;
    while left >= 258 {
        bits.put_code(0b1100_0101, 8); // length 258
        bits.put_code(0, 5); // distance 1
        left -= 258;
    }
    for _ in 0..left {
        bits.put_code(0x30, 8);
    }
    bits.put_code(0, 7); // end of the block
    let mut stream = vec![0x78, 0x9c];
    stream.extend(bits.bytes);
    // Adler-32 of zeros: the first sum stays 1, and the second counts the bytes.
    stream.extend((((length % 65_521) << 16) | 1).to_be_bytes());
    stream
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    /// Appends bits, the lowest bit first.
    fn put(&mut self, value: u32, count: u32) {
        for i in 0..count {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.last_mut().expect("a byte");
            *last |= (((value >> i) & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }

    /// Appends a code, the highest bit first, as deflate requires.
    fn put_code(&mut self, code: u32, count: u32) {
        for i in (0..count).rev() {
            self.put(code >> i, 1);
        }
    }
}

#[test]
fn the_bomb_is_sound() {
    let mut file = Hdf5::new();
    let bad = one_chunk(
        &mut file,
        filters(&[(1, &[9])]),
        100_000,
        &zeros_deflated(100_000),
    );
    let tree = good_is_good(file.beside_good(bad));
    assert_eq!(tree.content("bad"), Ok(vec![0; 100_000]));
}

/// A chunk of 256 MiB in a file of 1.7 MB is served. Without the cache, the program needs twice the
/// memory of the chunk.
#[test]
fn a_chunk_of_256_mebibytes() {
    const LENGTH: u32 = 256 << 20;
    let mut file = Hdf5::new();
    let bad = one_chunk(
        &mut file,
        filters(&[(1, &[9])]),
        LENGTH,
        &zeros_deflated(LENGTH),
    );
    let tree = Tree::new(file.beside_good(bad));
    assert_eq!(tree.size("bad"), Ok(u64::from(LENGTH)));
    assert_eq!(tree.part("bad", u64::from(LENGTH) - 5, 10), Ok(vec![0; 5]));
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
}

/// A chunk above the size limit is refused at open, before any decoding.
#[test]
fn a_chunk_of_three_gibibytes() {
    let mut file = Hdf5::new();
    let bad = one_chunk(
        &mut file,
        filters(&[(1, &[9])]),
        3 << 30,
        &zeros_deflated(1 << 20),
    );
    bad_alone_is_bad(file.beside_good(bad));
}

/// A group with many names for different objects. The test lists the names, looks them up, and
/// requests the path of an object with a reference count of two.
#[test]
fn two_hundred_thousand_names() {
    const NAMES: u64 = 200_000;
    const IN_A_NODE: u64 = 1000;
    let mut file = Hdf5::new();
    let object = header_1(&[
        Message(
            kind::DATASPACE,
            0,
            [vec![1, 1, 0, 0, 0, 0, 0, 0], words(&[4])].concat(),
        ),
        Message(kind::DATATYPE, 0, byte_type()),
        Message(kind::LAYOUT, 0, vec![3, 0, 4, 0, b'w', b'o', b'r', b'd']),
    ]);
    let object = [&object[..4], &[2], &object[5..]].concat(); // reference count of two
    assert_eq!(object.len() % 8, 0);
    let objects = file.put(&object.repeat(NAMES as usize));
    let names: Vec<u8> = (0..=NAMES)
        .flat_map(|i| format!("{i:07}\0").into_bytes())
        .collect();
    let data = file.put(&names);
    let heap = file.put(&local_heap(names.len() as u64, data));
    let mut leaf = vec![0];
    for first in (1..=NAMES).step_by(IN_A_NODE as usize) {
        let entry = |i: u64| (8 * i, objects + (i - 1) * object.len() as u64, 0);
        let entries: Vec<_> = (first..first + IN_A_NODE).map(entry).collect();
        let node = file.put(&symbols(IN_A_NODE as u16, &entries));
        leaf.extend([node, 8 * (first + IN_A_NODE - 1)]);
    }
    let leaf = group_node(0, (NAMES / IN_A_NODE) as u16, &leaf);
    let btree = file.put(&leaf);
    let root = file.put(&old_group(btree, heap));
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("names.h5");
    std::fs::write(&path, file.rooted_old(root)).expect("write");

    let mount = crate::harness::Mount::with(&path, &["-o", "cache_size=4M"]);
    let mut listing = std::process::Command::new("sh");
    listing
        .args(["-c", r#"ls -f "$0" | wc -l"#])
        .arg(&mount.path);
    let listed = crate::harness::run(&mut listing, crate::harness::MOUNT_LIMIT);
    assert_eq!(listed.success().text().trim(), "200002", "with . and ..");
    for name in ["0000001", "0100000", "0200000"] {
        assert_eq!(std::fs::read(mount.at(name)).expect(name), b"word");
    }
    std::fs::metadata(mount.at("0200001")).expect_err("no such name");
    let mut attribute = std::process::Command::new("getfattr");
    attribute
        .args(["--only-values", "-n", "user.h5fs.path"])
        .arg(mount.at("0150000"));
    let said = crate::harness::run(&mut attribute, crate::harness::MOUNT_LIMIT).success();
    assert_eq!(said.text(), "/0150000");
    let (worker, _) = mount.worker_and_supervisor(&path);
    assert!(worker.peak() <= (4 + 64) << 20, "{} bytes", worker.peak());
}

/// A hundred thousand nested groups, which would exceed any stack and any path limit.
#[test]
fn groups_a_hundred_thousand_deep() {
    const DEPTH: usize = 100_000;
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let mut below = file.put_group(&[(b"bottom", good)]);
    for _ in 0..DEPTH {
        below = file.put_group(&[(b"g", below)]);
    }
    let root = file.put_group(&[(b"good", good), (b"top", below)]);
    let tree = Tree::new(file.rooted(root));
    let mut at = tree.0.resolve(b"top").expect("the first").ino;
    for _ in 0..DEPTH {
        let next = tree.0.lookup(at, b"g").expect("the next");
        assert_eq!(next.attributes.kind, FileKind::Directory);
        at = next.ino;
    }
    let bottom = tree.0.lookup(at, b"bottom").expect("the last");
    let handle = tree.0.open_file(bottom.ino).expect("a file").handle;
    assert_eq!(
        tree.0.read(handle, 0, 100).expect("bytes").to_vec(),
        b"goodness"
    );
    // Its path has over 200 000 bytes. The cost of the request must not be quadratic in the depth.
    soon(|| tree.0.listxattr(bottom.ino)).expect("a list");
    let path = soon(|| tree.0.getxattr(bottom.ino, b"user.h5fs.path"));
    assert_eq!(
        path,
        Ok(Vec::new()),
        "a path of more steps than are followed"
    );
}

/// A superblock may be at 512 times any power of two. All these offsets are searched, even in a
/// file of a terabyte.
#[test]
fn a_superblock_far_into_a_terabyte() {
    let mut inner = Hdf5::new();
    let good = inner.put_bytes(b"goodness");
    let root = inner.put_group(&[(b"good", good)]);
    let bytes = inner.rooted(root);
    let directory = tempfile::tempdir().expect("directory");
    for shift in [9, 20, 31, 39] {
        let path = directory.path().join(format!("at-{shift}.h5"));
        let file = File::create(&path).expect("file");
        file.set_len(1 << 40).expect("a sparse file");
        file.write_all_at(&bytes, 1 << shift).expect("write");
        let filesystem = soon(|| Filesystem::open(&path, &Options::default())).expect("a mount");
        assert_eq!(Tree(filesystem).content("good"), Ok(b"goodness".to_vec()));
    }
    let path = directory.path().join("none");
    File::create(&path)
        .expect("file")
        .set_len(1 << 40)
        .expect("a sparse file");
    soon(|| Filesystem::open(&path, &Options::default()).map(|_| ())).expect_err("no format");
}

/// Reads such parts through the kernel with ordinary programs.
#[test]
fn a_mount_of_hostile_parts() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let bomb = one_chunk(
        &mut file,
        filters(&[(1, &[9])]),
        64,
        &zeros_deflated(64 << 20),
    );
    let own = file.next();
    let length = header_2(&[continuation(0, 0)]).len() as u64;
    let circle = file.put(&header_2(&[continuation(own, length)]));
    let links = [
        hard_link(b"good", good),
        hard_link(b"bomb", bomb),
        hard_link(b"circle", circle),
        hard_link(b"nowhere", 1 << 60),
        hard_link(b"a/b", good),
        soft_link(b"self", b"self"),
        external_link(b"passwd", b"/etc/passwd", b"/"),
    ];
    let root = file.put(&group(&links));
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("hostile.h5");
    let mut written = File::create(&path).expect("file");
    written.write_all(&file.rooted(root)).expect("write");
    let mount = crate::harness::Mount::new(&path);
    let errno = |name: &str| {
        std::fs::read(mount.at(name))
            .expect_err("an error")
            .raw_os_error()
    };
    assert_eq!(errno("bomb"), Some(5));
    assert_eq!(errno("circle"), Some(5));
    assert_eq!(errno("nowhere"), Some(5));
    assert_eq!(errno("self"), Some(Errno::ELOOP as i32));
    assert_eq!(errno("passwd"), Some(Errno::ENOENT as i32));
    assert_eq!(std::fs::read(mount.at("good")).expect("good"), b"goodness");
    assert_eq!(std::fs::read(mount.at("a%2Fb")).expect("a/b"), b"goodness");
    assert_eq!(
        std::fs::read_dir(&mount.path).expect("listing").count(),
        links.len()
    );
}
