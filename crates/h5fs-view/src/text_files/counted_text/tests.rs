//! Tests of texts whose units have various lengths.

use proptest::prelude::*;

use super::*;
use crate::view::View;

/// Units of these lengths. The unit `damaged` cannot be written.
struct SizedUnits {
    lengths: Vec<usize>,
    damaged: Option<u64>,
}

impl TextUnits for SizedUnits {
    fn count(&self) -> u64 {
        self.lengths.len() as u64
    }

    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        _: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        for unit in units.clone() {
            if out.len() >= enough {
                return Ok(unit);
            }
            if self.damaged == Some(unit) {
                return Err(Error::NotFound);
            }
            let length = self.lengths[unit as usize];
            out.extend((0..length).map(|at| b'a' + ((at as u64 + unit) % 26) as u8));
            out.push(b'\n');
        }
        Ok(units.end)
    }
}

impl TextUnits for Arc<SizedUnits> {
    fn count(&self) -> u64 {
        (**self).count()
    }

    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        _: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        (**self).write(units, enough, &CancelToken::default(), out)
    }
}

fn words(lengths: &[usize], damaged: Option<u64>) -> SizedUnits {
    let lengths = lengths.to_vec();
    SizedUnits { lengths, damaged }
}

fn count_text(lengths: &[usize]) -> CountedFile<SizedUnits> {
    CountedFile::from_units(words(lengths, None))
}

/// Units whose `write` never writes anything.
struct EmptyUnits;

impl TextUnits for EmptyUnits {
    fn count(&self) -> u64 {
        5
    }

    fn write(&self, units: Range<u64>, _: usize, _: &CancelToken, _: &mut Vec<u8>) -> Result<u64> {
        Ok(units.start)
    }
}

#[test]
fn units_that_write_nothing_are_an_error() {
    let counted =
        TextLengthIndex::measure(&EmptyUnits, &Engine::new(0, 2), &RequestBudget::default());
    assert!(matches!(counted, Err(Error::Corrupt { .. })), "{counted:?}");
    let places = UnitOffsets::FirstOnly;
    let count = Arc::new(TextLengthIndex {
        bytes: 9,
        unit_offsets: places,
    });
    let read = CountedFile::from_count(EmptyUnits, count).read_at(0, 9);
    assert!(matches!(read, Err(Error::Corrupt { .. })), "{read:?}");
}

#[test]
fn a_text_without_units_is_empty() {
    let text = count_text(&[]);
    assert_eq!(text.length(), 0);
    assert!(text.read_at(0, 9).unwrap().is_empty());
}

#[test]
fn many_units_are_counted_in_order() {
    let lengths: Vec<usize> = (0..100_000).map(|unit| unit * 7 % 23).collect();
    let text = count_text(&lengths);
    let whole: usize = lengths.iter().map(|length| length + 1).sum();
    assert_eq!(text.length(), whole as u64);
    let before: usize = lengths[..77_777].iter().map(|length| length + 1).sum();
    let mut expected = Vec::new();
    let of_one = 77_777..77_778;
    words(&lengths, None)
        .write(of_one, 1, &CancelToken::default(), &mut expected)
        .unwrap();
    let read = text.read_at(before as u64, expected.len()).unwrap();
    assert_eq!(read[..], expected);
}

#[test]
fn a_text_that_is_too_long_is_not_counted() {
    struct UniformUnitsOfLength(u64, u64);
    impl TextUnits for UniformUnitsOfLength {
        fn count(&self) -> u64 {
            self.0
        }

        fn write(
            &self,
            units: Range<u64>,
            _: usize,
            _: &CancelToken,
            _: &mut Vec<u8>,
        ) -> Result<u64> {
            Ok(units.end)
        }

        fn measure(
            &self,
            units: Range<u64>,
            _: usize,
            _: &CancelToken,
            _: &mut Vec<u8>,
        ) -> Result<(u64, u64)> {
            Ok((units.end, (units.end - units.start) * self.1))
        }
    }
    let engine = Engine::new(0, 2);
    let count = |values, bytes| {
        TextLengthIndex::measure(
            &UniformUnitsOfLength(values, bytes),
            &engine,
            &RequestBudget::default(),
        )
        .unwrap()
    };
    let most = limits::COUNTED_VALUES;
    assert!(count(most + 1, 0).is_none());
    assert!(count(most, 0).is_some());
    assert!(count(1 << 18, 1025).is_none());
    assert_eq!(count(1 << 18, 1024).unwrap().bytes, limits::COUNTED_BYTES);
}

#[test]
fn counting_fails_after_a_time_limit() {
    let engine = Engine::new(0, 1);
    let count = |elapsed| {
        let started = Instant::now().checked_sub(elapsed);
        let started = started.expect("a machine that has run for a minute");
        let units = words(&[1; 10], None);
        TextLengthIndex::measure_since(started, &units, &engine, &RequestBudget::default())
    };
    assert!(count(limits::COUNTED_TIME).is_err_and(|error| error.is_transient()));
    assert!(count(limits::COUNTED_TIME / 2).is_ok_and(|count| count.is_some()));
}

#[test]
fn checkpoints_take_little_memory() {
    let lengths = vec![1023; 40_000];
    let text = count_text(&lengths);
    let count = &text.text().count;
    assert!(count.weight() <= 1 << 15, "{}", count.weight());
    assert!(2 * 16 * to_u64(MAX_MARKS) <= limits::COUNTS);
}

#[test]
fn readers_of_one_text_share_its_checkpoints() {
    let lengths = vec![90; 100_000];
    let engine = Engine::new(0, 1);
    let count =
        TextLengthIndex::measure(&words(&lengths, None), &engine, &RequestBudget::default());
    let count = Arc::new(count.unwrap().unwrap());
    let text = Arc::new(words(&lengths, None));
    let readers = (0..64).map(|_| CountedFile::from_count(Arc::clone(&text), Arc::clone(&count)));
    let readers: Vec<_> = readers.collect();
    let mut bytes = 0;
    for (reader, offset) in readers.iter().zip((0_u64..).step_by(140_000)) {
        assert_eq!(reader.read_at(offset, 131_072).unwrap().len(), 131_072);
        assert_eq!(
            reader.read_at(9_000_000 - offset, 4096).unwrap().len(),
            4096
        );
        bytes += reader.own_bytes();
    }
    assert!(bytes < 64 * 256, "{bytes}");
}

#[test]
fn a_text_with_another_length_is_an_error() {
    let engine = Engine::new(0, 1);
    for (counted, read) in [([3, 3], [3, 1]), ([3, 1], [3, 3])] {
        let count =
            TextLengthIndex::measure(&words(&counted, None), &engine, &RequestBudget::default());
        let count = Arc::new(count.unwrap().unwrap());
        let text = CountedFile::from_count(words(&read, None), count);
        assert!(text.read_at(0, 100).is_err());
    }
}

#[test]
fn a_unit_that_cannot_be_written_is_an_error() {
    let engine = Engine::new(0, 1);
    let damaged = words(&[1; 1000], Some(321));
    assert!(TextLengthIndex::measure(&damaged, &engine, &RequestBudget::default()).is_err());
    let sound =
        TextLengthIndex::measure(&words(&[1; 1000], None), &engine, &RequestBudget::default());
    let stream = CountedFile::from_count(damaged, Arc::new(sound.unwrap().unwrap()));
    assert_eq!(stream.read_at(0, 2 * 321).unwrap().len(), 2 * 321);
    assert!(stream.read_at(0, 10_000).is_err());
    assert!(stream.read_at(2 * 321, 1).is_err());
}

proptest! {
    #[test]
    fn any_part_equals_its_range_of_the_whole(
        lengths in prop::collection::vec(prop_oneof![0..9_usize, 0..50_000_usize], 0..40),
        reads in prop::collection::vec((0..400_000_u64, 0..100_000_usize), 1..6),
    ) {
        let mut whole = Vec::new();
        let all = 0..lengths.len() as u64;
        if !all.is_empty() {
            words(&lengths, None).write(all, usize::MAX, &CancelToken::default(), &mut whole).unwrap();
        }
        let text = count_text(&lengths);
        prop_assert_eq!(text.length(), whole.len() as u64);
        for (offset, length) in reads {
            let start = (offset as usize).min(whole.len());
            let end = (start + length).min(whole.len());
            let read = text.read_at(offset, length).unwrap();
            prop_assert_eq!(&read[..], &whole[start..end]);
        }
    }
}

/// A text of several parts; each part reports whether there are more.
struct Parts(Vec<Result<usize>>);

impl ResumableText for Parts {
    type ResumePoint = usize;

    fn begin(&self) -> usize {
        0
    }

    fn write_from(
        &self,
        place: &mut usize,
        _: usize,
        _: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.resize(out.len() + self.0[*place].clone()?, b'x');
        *place += 1;
        Ok(*place < self.0.len())
    }
}

#[test]
fn parts_of_a_text_are_counted_in_order() {
    let heavy = std::cell::Cell::new(0);
    let count = |parts: &[Result<usize>]| {
        let begin_heavy = || {
            heavy.set(heavy.get() + 1);
            Ok(())
        };
        let count = TextLengthIndex::measure_parts(
            &Parts(parts.to_vec()),
            &RequestBudget::default(),
            begin_heavy,
        );
        count.map(|count| count.map(|count| (count.bytes, count.nearest_unit(5).is_some())))
    };
    assert_eq!(count(&[Ok(7)]), Ok(Some((7, false))));
    assert_eq!(heavy.get(), 0);
    assert_eq!(count(&[Ok(7), Ok(0), Ok(3)]), Ok(Some((10, false))));
    assert_eq!(heavy.get(), 1);
    assert_eq!(count(&[Ok(7), Err(Error::NotFound)]), Err(Error::NotFound));
    let most = usize::try_from(limits::COUNTED_BYTES).unwrap();
    assert_eq!(count(&[Ok(most), Ok(1), Ok(0)]), Ok(None));
}
