//! Makes files with small faults: changes a few bytes of a good file and updates the checksums, so
//! that code after the checksum test sees the fault.

use std::ops::Range;

use h5fs_reader::wire::checksum::lookup3;

/// The generator "splitmix64", which returns the same numbers for a seed on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("below a length")
    }
}

/// A good file with the positions of its checksums.
pub(crate) struct Original {
    bytes: Vec<u8>,
    /// The range that each checksum covers. The checksum follows the range.
    sealed: Vec<Range<usize>>,
    /// Positions that are changed more often: the bytes near known signatures.
    structures: Vec<usize>,
}

/// Signatures of HDF5 structures with a checksum.
const SEALED: [&[u8]; 17] = [
    b"\x89HDF\r\n\x1a\n",
    b"OHDR",
    b"OCHK",
    b"BTHD",
    b"BTIN",
    b"BTLF",
    b"FRHP",
    b"FHDB",
    b"FHIB",
    b"FAHD",
    b"FADB",
    b"EAHD",
    b"EAIB",
    b"EASB",
    b"EADB",
    b"SMTB",
    b"SMLI",
];

/// Signatures of structures without a checksum.
const OPEN: [&[u8]; 7] = [
    b"TREE", b"SNOD", b"HEAP", b"GCOL", b"\xd3BLK", b"#ASDF", b"!core/",
];

/// Length limit in bytes of structures whose checksum is searched.
const LONGEST: usize = 1500;

impl Original {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut sealed = Vec::new();
        let mut structures = Vec::new();
        for at in 0..bytes.len() {
            let rest = &bytes[at..];
            if SEALED.iter().any(|name| rest.starts_with(name)) {
                structures.push(at);
                sealed.extend(seal(rest).map(|length| at..at + length));
            } else if OPEN.iter().any(|name| rest.starts_with(name)) {
                structures.push(at);
            }
        }
        Original {
            bytes,
            sealed,
            structures,
        }
    }

    /// Returns a copy with one to four faults.
    pub(crate) fn mutant(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if bytes.is_empty() {
            return bytes;
        }
        for _ in 0..=random.below(4) {
            let at = self.place(random);
            change(&mut bytes, at, random);
        }
        // Code after a wrong checksum never sees the fault, so most checksums are updated.
        if random.below(4) != 0 {
            self.reseal(&mut bytes);
        }
        if random.below(40) == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        bytes
    }

    fn place(&self, random: &mut Random) -> usize {
        if self.structures.is_empty() || random.below(3) == 0 {
            return random.below(self.bytes.len());
        }
        let near = self.structures[random.below(self.structures.len())];
        (near + random.below(160)).min(self.bytes.len() - 1)
    }

    pub(crate) fn reseal(&self, bytes: &mut [u8]) {
        for range in &self.sealed {
            let sum = lookup3(&bytes[range.clone()]);
            bytes[range.end..range.end + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Returns the length of the structure at the start of `bytes`, up to its checksum.
fn seal(bytes: &[u8]) -> Option<usize> {
    let longest = LONGEST.min(bytes.len().checked_sub(4)?);
    (8..=longest).find(|&length| {
        let sum = u32::from_le_bytes(bytes[length..length + 4].try_into().expect("four bytes"));
        sum != 0 && lookup3(&bytes[..length]) == sum
    })
}

/// Changes a few bytes at `at`.
fn change(bytes: &mut [u8], at: usize, random: &mut Random) {
    const TELLING: [u64; 14] = [
        0,
        1,
        2,
        7,
        0x7f,
        0x80,
        0xff,
        0xffff,
        0x7fff_ffff,
        0xffff_ffff,
        1 << 40,
        1 << 60,
        i64::MAX as u64,
        u64::MAX,
    ];
    let telling = TELLING[random.below(TELLING.len())].to_le_bytes();
    let width = [1, 2, 4, 8][random.below(4)].min(bytes.len() - at);
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.next().to_le_bytes()[0],
        2 => bytes[at] = bytes[at].wrapping_add([1, 0xff][random.below(2)]),
        3 | 4 => bytes[at..at + width].copy_from_slice(&telling[..width]),
        _ => {
            let from = random.below(bytes.len() - width + 1);
            bytes.copy_within(from..from + width, at);
        }
    }
}
