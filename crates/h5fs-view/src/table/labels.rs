//! Names of columns in Python pickles, in the format of pandas: texts, numbers, times, and tuples,
//! whose parts are joined as `a.b`.

use h5fs_conventions::pickle::{Pickle, PickleValue, ValueIndex};
use h5fs_conventions::table_budget::TableBudget;
use h5fs_reader::error::Result;
use h5fs_reader::model::number::{FloatValue, append_formatted};

use crate::table::time::{Frequency, PandasTime, TimeUnit};

/// Names of columns, from a pickle or an array.
#[derive(Debug, Default)]
pub(super) struct ColumnLabels {
    pub(super) texts: Vec<Vec<u8>>,
    /// Whether all names are instants or durations, so that pandas may shorten their texts.
    pub(super) has_only_times: bool,
}

/// Returns the names in a Python list; `None` if the value is not a list, or if a name has an
/// unsupported type. `budget` is charged for each name, because a pickle may refer to one text very
/// often.
///
/// # Errors
/// `Limit` if the budget is exceeded.
pub(super) fn read_labels(
    pickle: &Pickle,
    list: ValueIndex,
    budget: &TableBudget,
) -> Result<Option<ColumnLabels>> {
    let Some(items) = pickle.items(list) else {
        return Ok(None);
    };
    let mut labels = ColumnLabels {
        texts: Vec::new(),
        has_only_times: !items.is_empty(),
    };
    for &item in items {
        let Some(text) = format_label(pickle, item, budget)? else {
            return Ok(None);
        };
        labels.texts.push(text);
        labels.has_only_times &= is_time(pickle, item);
    }
    Ok(Some(labels))
}

/// Returns the name in a pickle of a single name; `None` if the name has an unsupported type.
///
/// # Errors
/// Fails as [`read_labels`] does.
pub(super) fn read_single_label(
    pickle: &Pickle,
    budget: &TableBudget,
) -> Result<Option<ColumnLabels>> {
    let text = format_label(pickle, pickle.root_value(), budget)?;
    Ok(text.map(|text| ColumnLabels {
        texts: vec![text],
        has_only_times: is_time(pickle, pickle.root_value()),
    }))
}

/// Formats the object `item` as a name; `None` if the object has an unsupported type. The parts of
/// a tuple are joined as `a.b`.
///
/// # Errors
/// Fails as [`read_labels`] does.
pub(super) fn format_label(
    pickle: &Pickle,
    item: ValueIndex,
    budget: &TableBudget,
) -> Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    budget.spend_on_name(0)?;
    let alone = [item];
    let parts = pickle.items(item).unwrap_or(&alone);
    for (number, &part) in parts.iter().enumerate() {
        if number > 0 {
            text.push(b'.');
        }
        let start = text.len();
        if !write_part(pickle, part, budget, &mut text)? {
            return Ok(None);
        }
        if let Some((time, count)) = parse_time(pickle, part) {
            text.truncate(start);
            time.write_name(count, &mut text);
        }
    }
    Ok(Some(text))
}

/// Appends the text of a name or of one part of a tuple. Returns false if the object has an
/// unsupported type.
fn write_part(
    pickle: &Pickle,
    item: ValueIndex,
    budget: &TableBudget,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let length = match pickle.get(item) {
        Some(PickleValue::Text(text)) => text.len(),
        _ => 0,
    };
    budget.spend(1 + length as u64)?;
    match pickle.get(item) {
        Some(PickleValue::None) => {}
        Some(PickleValue::Bool(value)) => {
            out.extend_from_slice(if *value { b"True" } else { b"False" });
        }
        _ => return Ok(write_scalar(pickle, item, out).is_some()),
    }
    Ok(true)
}

/// Returns whether [`write_scalar`] supports the object `item`, without copying its text.
pub(super) fn can_write(pickle: &Pickle, item: ValueIndex) -> bool {
    match pickle.get(item) {
        Some(PickleValue::Float(_) | PickleValue::Integer(_) | PickleValue::Text(_)) => true,
        Some(PickleValue::Object { .. }) => {
            parse_time(pickle, item).is_some() || parse_date(pickle, item).is_some()
        }
        _ => false,
    }
}

/// Appends the text of the object `item`. Returns `None` for an unsupported object. The object must
/// be neither a missing value nor a boolean.
pub(super) fn write_scalar(pickle: &Pickle, item: ValueIndex, out: &mut Vec<u8>) -> Option<()> {
    if let Some((time, count)) = parse_time(pickle, item) {
        time.write(count, out);
        return Some(());
    }
    match pickle.get(item)? {
        PickleValue::Float(number) => FloatValue::Double(*number).write_text(out),
        PickleValue::Object { .. } => {
            let (year, month, day) = parse_date(pickle, item)?;
            append_formatted(out, format_args!("{year:04}-{month:02}-{day:02}"));
        }
        _ => out.extend_from_slice(&pickle.text(item)?),
    }
    Some(())
}

/// Returns the year, the month and the day of a Python `datetime.date`; `None` for any other
/// object. A pickle stores the date as bytes.
fn parse_date(pickle: &Pickle, item: ValueIndex) -> Option<(u16, u8, u8)> {
    let (b"date", &[state]) = pickle.constructor_call(item)? else {
        return None;
    };
    let [high, low, month, day] = match pickle.constructor_call(state) {
        // Protocols before 3 store the bytes as a text of characters.
        Some((b"encode", &[text, ..])) => four_characters(&pickle.text(text)?)?,
        _ => (*pickle.text(state)?).try_into().ok()?,
    };
    Some((u16::from_be_bytes([high, low]), month, day))
}

/// Returns the four bytes that a pickle stores as a text of four characters; `None` for any other
/// text.
fn four_characters(text: &[u8]) -> Option<[u8; 4]> {
    // Each of these characters has at most two bytes in UTF-8.
    if text.len() > 8 {
        return None;
    }
    let bytes = str::from_utf8(text).ok()?.chars();
    let bytes: Option<Vec<u8>> = bytes.map(|byte| u8::try_from(byte).ok()).collect();
    bytes?.try_into().ok()
}

/// Returns whether an object is an instant or a duration.
fn is_time(pickle: &Pickle, item: ValueIndex) -> bool {
    let time = parse_time(pickle, item).map(|(time, _)| time);
    matches!(
        time,
        Some(PandasTime::Instant { .. } | PandasTime::Duration(_))
    )
}

/// Returns the type of a pandas time object (instant, duration or period), and its number of units;
/// `None` for any other object.
fn parse_time(pickle: &Pickle, item: ValueIndex) -> Option<(PandasTime, i64)> {
    let (name, arguments) = pickle.constructor_call(item)?;
    let unit = |rest: &[ValueIndex]| match rest.first() {
        Some(&unit) => time_unit(pickle.integer(unit)?),
        None => Some(TimeUnit::NANOSECOND),
    };
    match (name, arguments) {
        (b"_unpickle_timestamp", &[count, _, zone, ref rest @ ..]) => {
            let (unit, is_utc) = (unit(rest)?, !pickle.is_none(zone));
            Some((PandasTime::Instant { unit, is_utc }, pickle.integer(count)?))
        }
        (b"_timedelta_unpickle", &[count, ref rest @ ..]) => {
            Some((PandasTime::Duration(unit(rest)?), pickle.integer(count)?))
        }
        (b"Period", &[_, length, ordinal]) => {
            let length = parse_frequency(pickle, length)?;
            Some((PandasTime::Period(length), pickle.integer(ordinal)?))
        }
        _ => None,
    }
}

/// Returns the time unit whose number in NumPy (`NPY_DATETIMEUNIT`) is `number`; `None` for units
/// longer than a second or shorter than a nanosecond.
fn time_unit(number: i64) -> Option<TimeUnit> {
    let of_second = match number {
        7 => 1,
        8 => 1000,
        9 => 1_000_000,
        10 => 1_000_000_000,
        _ => return None,
    };
    Some(TimeUnit {
        per_second: of_second,
    })
}

/// Returns the frequency of periods that a pandas offset object represents; `None` for any other
/// object.
pub(super) fn parse_frequency(pickle: &Pickle, item: ValueIndex) -> Option<Frequency> {
    let second = |of_second| {
        Frequency::Second(TimeUnit {
            per_second: of_second,
        })
    };
    let (name, arguments) = pickle.constructor_call(item)?;
    Some(match name {
        b"YearEnd" | b"BYearEnd" => Frequency::Year,
        b"QuarterEnd" | b"BQuarterEnd" => Frequency::Quarter,
        b"MonthEnd" | b"BusinessMonthEnd" => Frequency::Month,
        b"Week" => {
            // In Python, weekday 6 is Sunday.
            let last = arguments.get(2).and_then(|&day| pickle.integer(day));
            Frequency::Week((last.unwrap_or(6).rem_euclid(7) + 1) % 7)
        }
        b"Day" => Frequency::Day,
        b"BusinessDay" => Frequency::BusinessDay,
        b"Hour" => Frequency::Hour,
        b"Minute" => Frequency::Minute,
        b"Second" => second(1),
        b"Milli" => second(1000),
        b"Micro" => second(1_000_000),
        b"Nano" => second(1_000_000_000),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::error::Error;

    #[test]
    fn repeated_labels_are_charged_each_time() {
        let named = |count: usize| {
            let text = [b"X\x00\x04\x00\x00", &[b'x'; 1024][..], b"q\x00a"].concat();
            let pickle = [b"\x80\x02]", &text[..], &b"h\x00a".repeat(count), b"."].concat();
            let pickle = Pickle::read(&pickle).unwrap();
            read_labels(&pickle, pickle.root_value(), &TableBudget::default())
        };
        assert_eq!(named(99).unwrap().unwrap().texts.len(), 100);
        assert!(matches!(named(32 << 10), Err(Error::Limit { .. })));
    }

    /// The pickles were written by pandas 3.1 and 2.3. Expected is the header of
    /// `DataFrame.to_csv`.
    #[test]
    fn names_equal_those_of_pandas() {
        let names = |pickle: &[u8]| {
            let pickle = Pickle::read(pickle).unwrap();
            let labels = read_labels(&pickle, pickle.root_value(), &TableBudget::default());
            let labels = labels.unwrap().unwrap();
            let texts = labels.texts.into_iter();
            let texts = texts.map(|text| String::from_utf8(text).unwrap());
            (texts.collect::<Vec<_>>(), labels.has_only_times)
        };
        let month = b"(lp0\ncpandas._libs.tslibs.period\nPeriod\np2\n(N\
            cpandas._libs.tslibs.offsets\nMonthEnd\np3\n(I1\nI00\ntp4\nRp5\nI648\ntp6\nRp7\na.";
        assert_eq!(names(month), (vec!["2024-01".to_owned()], false));
        let stamp = b"(lp0\ncpandas._libs.tslibs.timestamps\n_unpickle_timestamp\np1\n\
            (L1704110400000000L\nNNI9\ntp2\nRp3\na.";
        assert_eq!(names(stamp), (vec!["2024-01-01 12:00:00".to_owned()], true));
        let mixed = b"(lp0\n(Va\nI2\ntp1\naF0.5\naI01\na.";
        let expected = ["a.2", "0.5", "True"].map(str::to_owned);
        assert_eq!(names(mixed), (expected.to_vec(), false));
        let date = b"(lp0\ncdatetime\ndate\np1\n(c_codecs\nencode\np2\n\
            (V\x07\xe8\x01\x02\np3\nVlatin1\np4\ntp5\nRp6\ntp7\nRp8\na.";
        assert_eq!(names(date).0, ["2024-01-02"]);
    }
}
