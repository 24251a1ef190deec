//! Object headers and shared messages.

use super::hdf5::*;
use super::tree::*;

/// Returns a valid version 1 header, which a test damages.
fn old_header() -> Vec<u8> {
    header_1(&[
        dataspace(&[4]),
        Message(kind::DATATYPE, 0, byte_type()),
        contiguous(SOME, 4),
    ])
}

#[test]
fn old_headers_whose_sizes_do_not_fit() {
    let spoilt = |at: usize, bytes: &[u8]| {
        let mut header = old_header();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        header
    };
    bad_alone_is_bad(with_bad(&spoilt(0, &[3])));
    bad_alone_is_bad(with_bad(&spoilt(8, &[0xff; 4]))); // size of the header
    bad_alone_is_bad(with_bad(&spoilt(8, &[16, 0, 0, 0])));
    bad_alone_is_bad(with_bad(&spoilt(18, &[0xff, 0xff]))); // size of the first message
    // not a multiple of 8, so the next message is misaligned
    bad_alone_is_bad(with_bad(&spoilt(18, &[3, 0])));
    // The libraries ignore a wrong number of messages too, because some writers have miscounted.
    for number in [0, 1, 4, u16::MAX] {
        let mut file = Hdf5::new();
        let miscounted = file.put(&spoilt(2, &number.to_le_bytes()));
        let tree = good_is_good(file.beside_good(miscounted));
        assert_eq!(tree.content("bad"), Ok(b"some".to_vec()));
    }
}

#[test]
fn new_headers_are_bounded_and_sealed() {
    let sound = dataset(&[4], &byte_type(), contiguous(SOME, 4), &[]);
    let mut unsealed = sound.clone();
    let last = unsealed.len() - 1;
    unsealed[last] ^= 1;
    bad_alone_is_bad(with_bad(&unsealed));
    let mut long = sound.clone();
    long[6..10].copy_from_slice(&[0xff; 4]);
    bad_alone_is_bad(with_bad(&long));
    let longest = sealed([&b"OHDR\x02\x03"[..], &[0xff; 8], &[0; 16]].concat());
    bad_alone_is_bad(with_bad(&longest));
    bad_alone_is_bad(with_bad(b"OHDR"));
    bad_alone_is_bad(with_bad(&sealed(b"OHDR\x03\x00\x00".to_vec())));
    // A gap shorter than a message prefix is ignored, with any bytes in it.
    for gap in [&[0, 0, 0][..], &[0xff; 3], &[16], &[kind::CONTINUATION, 1]] {
        let mut body = sound[10..sound.len() - 4].to_vec();
        body.extend(gap);
        let length = u32::try_from(body.len()).expect("short").to_le_bytes();
        let mut file = Hdf5::new();
        let bad = file.put(&sealed([&b"OHDR\x02\x02"[..], &length, &body].concat()));
        let tree = good_is_good(file.beside_good(bad));
        assert_eq!(tree.content("bad"), Ok(b"some".to_vec()));
    }
    // If the space suffices for a message, it is not a gap, so the size of some message is damaged.
    let mut body = sound[10..sound.len() - 4].to_vec();
    body.extend([0, 2, 0, 0, 0, 0, 0, 0, 0]);
    let length = u32::try_from(body.len()).expect("short").to_le_bytes();
    let spoilt = sealed([&b"OHDR\x02\x02"[..], &length, &body].concat());
    bad_alone_is_bad(with_bad(&spoilt));
}

/// The header of `bad` is the last structure of the file, and is truncated.
#[test]
fn headers_that_the_file_ends_in() {
    for header in [
        dataset(&[4], &byte_type(), contiguous(SOME, 4), &[]),
        old_header(),
    ] {
        let whole = |cut: usize| {
            let mut file = Hdf5::new();
            let good = file.put_bytes(b"goodness");
            let root = file.next();
            file.put_group(&[(b"bad", 0), (b"good", good)]);
            let bad = file.put(&header);
            file.put_at(
                root,
                &group(&[hard_link(b"bad", bad), hard_link(b"good", good)]),
            );
            file.0.truncate(file.0.len() - cut);
            file.rooted(root)
        };
        assert_eq!(Tree::new(whole(0)).content("bad"), Ok(b"some".to_vec()));
        for cut in 1..=header.len() {
            bad_alone_is_bad(whole(cut));
        }
    }
}

#[test]
fn continuations_that_are_cut_off_or_unsealed() {
    let block = continuation_2(&[dataspace(&[4]), contiguous(SOME, 4)]);
    let length = block.len() as u64;
    let continued = |block: &[u8], length: u64| {
        let mut file = Hdf5::new();
        let at = file.put(block);
        let messages = [
            Message(kind::DATATYPE, 0, byte_type()),
            continuation(at, length),
        ];
        let bad = file.put(&header_2(&messages));
        file.beside_good(bad)
    };
    let tree = good_is_good(continued(&block, length));
    assert_eq!(tree.content("bad"), Ok(b"some".to_vec()));
    for wrong in (0..length).chain([length + 1, length + 8]) {
        bad_alone_is_bad(continued(&block, wrong));
    }
    for at in 0..block.len() {
        let mut flipped = block.clone();
        flipped[at] ^= 0x10;
        bad_alone_is_bad(continued(&flipped, length));
    }
}

#[test]
fn continuations_in_circles() {
    // A continuation that leads to its own header, in both versions.
    let mut file = Hdf5::new();
    let own = file.next();
    let length = header_2(&[continuation(0, 0)]).len() as u64;
    let bad = file.put(&header_2(&[continuation(own, length)]));
    bad_alone_is_bad(file.beside_good(bad));
    let mut file = Hdf5::new();
    let own = file.next();
    let bad = file.put(&header_1(&[continuation(own, 40)]));
    bad_alone_is_bad(file.beside_good(bad));

    // Two continuations that lead to each other.
    let mut file = Hdf5::new();
    let (first, length) = (
        file.next(),
        continuation_2(&[continuation(0, 0)]).len() as u64,
    );
    let second = (first + length).next_multiple_of(8);
    file.put(&continuation_2(&[continuation(second, length)]));
    file.put(&continuation_2(&[continuation(first, length)]));
    let bad = file.put(&header_2(&[continuation(first, length)]));
    bad_alone_is_bad(file.beside_good(bad));
}

#[test]
fn continuations_to_nothing() {
    for (at, length) in [
        (0, 0),
        (0, u64::MAX),
        (UNDEFINED, 64),
        (1 << 62, 64),
        (8, 3),
        (0, 64),
    ] {
        bad_alone_is_bad(with_bad(&header_2(&[continuation(at, length)])));
    }
    bad_alone_is_bad(with_bad(&header_1(&[continuation(1 << 62, 64)])));
    // A continuation of length 0 with messages at its address, after all messages that a dataset
    // needs.
    for at in [0, 8, 96] {
        let messages = [
            dataspace(&[4]),
            Message(kind::DATATYPE, 0, byte_type()),
            contiguous(SOME, 4),
            continuation(at, 0),
        ];
        bad_alone_is_bad(with_bad(&header_1(&messages)));
    }
    // A continuation that leads to another header, which has another signature.
    let mut file = Hdf5::new();
    let other = header_2(&[]);
    let at = file.put(&other);
    let bad = file.put(&header_2(&[continuation(at, other.len() as u64)]));
    bad_alone_is_bad(file.beside_good(bad));
}

/// Overlapping continuations, each one byte after the previous one: more blocks than any header
/// has.
#[test]
fn a_million_continuations() {
    let mut file = Hdf5::new();
    let messages: Vec<Message> = (0..2700)
        .map(|i| continuation(4096 + i, 65536 - i))
        .collect();
    let at = file.put(&header_1(&messages));
    file.0.resize(200_000, 0);
    bad_alone_is_bad(file.beside_good(at));
    let mut file = Hdf5::new();
    let places: Vec<u64> = (0..5000).map(|i| 4096 + 24 * i).collect();
    file.0.resize(4096, 0);
    for at in &places {
        assert_eq!(file.put(&messages_1(&[continuation(at + 24, 24)])), *at);
    }
    let bad = file.put(&header_1(&[continuation(4096, 24)]));
    bad_alone_is_bad(file.beside_good(bad));
}

/// Returns the body of a message that is shared from the header at `at`.
fn shared_in(at: u64) -> Vec<u8> {
    [vec![3, 2], words(&[at])].concat()
}

#[test]
fn shared_messages_that_lead_to_themselves() {
    let shared = |body: Vec<u8>| {
        header_2(&[
            dataspace(&[4]),
            Message(kind::DATATYPE, 2, body),
            contiguous(SOME, 4),
        ])
    };
    let mut file = Hdf5::new();
    let own = file.next();
    let bad = file.put(&shared(shared_in(own)));
    bad_alone_is_bad(file.beside_good(bad));

    let mut file = Hdf5::new();
    let first = file.next();
    let second = first + (shared(shared_in(0)).len() as u64).next_multiple_of(8);
    let bad = file.put(&shared(shared_in(second)));
    file.put(&shared(shared_in(first)));
    bad_alone_is_bad(file.beside_good(bad));
}

#[test]
fn shared_messages_that_lead_nowhere() {
    let shared = |body: Vec<u8>| {
        with_bad(&header_2(&[
            dataspace(&[4]),
            Message(kind::DATATYPE, 2, body),
            contiguous(SOME, 4),
        ]))
    };
    bad_alone_is_bad(shared(shared_in(1 << 60)));
    bad_alone_is_bad(shared(vec![9, 2]));
    bad_alone_is_bad(shared(Vec::new()));
    // In a heap, but the file has none.
    bad_alone_is_bad(shared(vec![3, 1, 0, 0, 0, 0, 0, 0, 0, 0]));
    // On the global heap, which only version 1.0 of the format permits.
    let on_global_heap = [vec![1, 1, 0, 0, 0, 0, 0, 0], words(&[96, 1])].concat();
    let error = bad_alone_is_bad(shared(on_global_heap)).to_string();
    assert!(
        error.contains("version 1, type 1 is not supported"),
        "{error}"
    );
    // In a header without a message of this type.
    let mut file = Hdf5::new();
    let other = file.put(&header_2(&[dataspace(&[4])]));
    let bad = file.put(&header_2(&[
        dataspace(&[4]),
        Message(kind::DATATYPE, 2, shared_in(other)),
        contiguous(SOME, 4),
    ]));
    bad_alone_is_bad(file.beside_good(bad));
}

/// Messages whose type is never shared. If the shared flag is set, the message is neither resolved
/// nor read as an unshared message.
#[test]
fn messages_of_types_that_are_never_shared() {
    let mut file = Hdf5::new();
    let child = file.put_bytes(b"child");
    let elsewhere = file.put(&header_2(&[contiguous(SOME, 4)]));
    let rest = continuation_2(&[contiguous(SOME, 4)]);
    let continued = continuation(file.put(&rest), rest.len() as u64);
    let heap = file.put(&local_heap(8, 96));
    let table = words(&[file.put(&group_node(0, 0, &[0])), heap]);
    let headers = |flags: u8| {
        let marked = |message: Message| Message(message.0, flags, message.2);
        let datatype = Message(kind::DATATYPE, 0, byte_type());
        let dataset = |last| header_2(&[dataspace(&[4]), datatype.clone(), marked(last)]);
        [
            dataset(contiguous(SOME, 4)),
            dataset(continued.clone()),
            group(&[marked(hard_link(b"one", child))]),
            header_1(&[marked(Message(kind::SYMBOL_TABLE, 0, table.clone()))]),
        ]
    };
    let beside = |header: &[u8]| {
        let mut file = file.clone();
        let bad = file.put(header);
        file.beside_good(bad)
    };
    let [layout, behind, link, links] = headers(0);
    for dataset in [layout, behind] {
        let tree = good_is_good(beside(&dataset));
        assert_eq!(tree.content("bad"), Ok(b"some".to_vec()));
    }
    for (group, names) in [(link, vec![b"one".to_vec()]), (links, vec![])] {
        let tree = good_is_good(beside(&group));
        assert_eq!(tree.names("bad"), Ok(names));
    }
    for header in headers(2) {
        bad_alone_is_bad(beside(&header));
    }
    bad_alone_is_bad(beside(&header_2(&[
        dataspace(&[4]),
        Message(kind::DATATYPE, 0, byte_type()),
        Message(kind::LAYOUT, 2, shared_in(elsewhere)),
    ])));
}

/// A dataset that lacks one of its messages is neither a committed datatype nor a group.
#[test]
fn datasets_that_lack_a_message() {
    let mut file = Hdf5::new();
    let sound = [
        dataspace(&[4]),
        Message(kind::DATATYPE, 0, byte_type()),
        contiguous(SOME, 4),
        Message(kind::FILL_VALUE, 0, vec![3, 0x0a]),
    ];
    let beside = |file: &Hdf5, messages: &[Message]| {
        let mut file = file.clone();
        let bad = file.put(&header_2(messages));
        file.beside_good(bad)
    };
    let child = file.put_bytes(b"child");
    let tree = good_is_good(beside(&file, &sound));
    assert_eq!(tree.content("bad"), Ok(b"some".to_vec()));
    for lost in 0..3 {
        // An unknown message type, or a message type of groups.
        for message in [Message(0x1f, 0, vec![0; 24]), hard_link(b"one", child)] {
            let mut messages = sound.clone();
            messages[lost] = message;
            bad_alone_is_bad(beside(&file, &messages));
        }
    }
    let committed = beside(&file, &sound[1..2]);
    assert!(good_is_good(committed).content("bad").is_ok());
}

/// Messages that only writers need are ignored.
#[test]
fn messages_for_writers_are_not_parsed() {
    let garbage = vec![0xff; 40];
    let nonsense: Vec<Message> = [0x09, 0x0e, 0x12, 0x17, 0x18, 0x13]
        .map(|kind| Message(kind, 0, garbage.clone()))
        .into();
    let mut file = Hdf5::new();
    let data = file.put(b"readable");
    let bad = file.put(&dataset(&[8], &byte_type(), contiguous(data, 8), &nonsense));
    let tree = good_is_good(file.beside_good(bad));
    assert_eq!(tree.content("bad"), Ok(b"readable".to_vec()));
}

/// Other programs cannot know what such a message changes.
#[test]
fn unknown_messages_that_must_be_known_are_named() {
    const MUST_BE_KNOWN: u8 = 0x80;
    let error = bad_alone_is_bad(with_bad_dataset(vec![Message(
        0x1f,
        MUST_BE_KNOWN,
        vec![0; 8],
    )]));
    let error = error.to_string();
    assert!(
        error.contains("message type 0x001f is not supported"),
        "{error}"
    );
}
