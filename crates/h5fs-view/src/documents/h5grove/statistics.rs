//! The statistics of an array's numbers. NaN and infinities do not count.

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::number::{FloatValue, append_formatted};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::text::JsonObject;

use crate::documents::h5grove::values::{Number, number_values};
use crate::elements::Elements;
use crate::limits;

/// The statistics of the numbers read so far. The smallest and the largest number are exact.
#[derive(Debug, Clone, Copy)]
struct NumberStatistics<T> {
    count: u64,
    min: Option<T>,
    max: Option<T>,
    positive_min: Option<T>,
    strict_positive_min: Option<T>,
    mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
}

impl<T: Copy + PartialOrd + Default> NumberStatistics<T> {
    fn new() -> Self {
        NumberStatistics {
            count: 0,
            min: None,
            max: None,
            positive_min: None,
            strict_positive_min: None,
            mean: 0.0,
            squares: 0.0,
        }
    }

    /// Adds a finite number (the algorithm of Welford). `real` is the nearest double.
    fn add(&mut self, value: T, real: f64) {
        let least = |known: Option<T>| known.filter(|known| *known < value).unwrap_or(value);
        let zero = T::default();
        self.min = Some(least(self.min));
        self.max = Some(self.max.filter(|known| *known > value).unwrap_or(value));
        if value >= zero {
            self.positive_min = Some(least(self.positive_min));
        }
        if value > zero {
            self.strict_positive_min = Some(least(self.strict_positive_min));
        }
        self.count += 1;
        let before = real - self.mean;
        #[expect(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
        let count = self.count as f64;
        self.mean += before / count;
        self.squares += before * (real - self.mean);
    }

    /// Returns the statistics as JSON. `write` appends a number, and `write_mean` a mean.
    fn to_json(self, write: fn(T, &mut Vec<u8>), write_mean: fn(f64, &mut Vec<u8>)) -> String {
        #[expect(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
        let variance = self.squares / self.count.max(1) as f64;
        // The sum of large numbers may not be finite.
        let has_any = |value: f64| (self.count > 0 && value.is_finite()).then_some(value);
        let mut about = JsonObject::default();
        let null = b"null";
        for (name, value) in [
            ("strict_positive_min", self.strict_positive_min),
            ("positive_min", self.positive_min),
            ("min", self.min),
            ("max", self.max),
        ] {
            let out = about.add_key(name);
            match value {
                Some(value) => write(value, out),
                None => out.extend_from_slice(null),
            }
        }
        for (name, value) in [("mean", self.mean), ("std", variance.sqrt())] {
            let out = about.add_key(name);
            match has_any(value) {
                Some(value) => write_mean(value, out),
                None => out.extend_from_slice(null),
            }
        }
        about.finish()
    }
}

/// Returns the statistics of numbers as JSON. Those of integers are integers.
///
/// # Errors
/// `Unsupported` for elements that are not real numbers. Fails if an element cannot be read.
pub fn statistics(elements: &Elements, cancel: &CancelToken) -> Result<String> {
    let count = product(elements.dims.as_deref().unwrap_or_default())?;
    Error::check_limit(count, limits::H5GROVE_VALUES, "numbers of statistics")?;
    let is_real = matches!(elements.datatype.class, Class::Float(_));
    let (mut reals, mut integers) = (NumberStatistics::new(), NumberStatistics::new());
    let mut at = 0;
    while at < count {
        let step = elements.batch_elements().min(count - at);
        for number in number_values(elements, at, step, cancel)? {
            match number {
                Number::Real(value) if value.is_finite() => reals.add(value, value),
                Number::Real(_) => {}
                Number::Whole(value) => integers.add(value, number.as_f64()),
            }
        }
        at += step;
    }
    let write_real = |value: f64, out: &mut Vec<u8>| FloatValue::Double(value).write_text(out);
    if is_real {
        return Ok(reals.to_json(write_real, write_real));
    }
    Ok(integers.to_json(
        |value: i128, out| append_formatted(out, format_args!("{value}")),
        |value, out| append_formatted(out, format_args!("{:.0}", value.trunc())),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_files::text::InMemoryContent;
    use h5fs_reader::model::Datatype;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::int;

    fn of(datatype: Datatype, bytes: Vec<u8>, count: u64) -> String {
        let elements = Elements {
            datatype,
            dims: Some(vec![count]),
            content: Box::new(InMemoryContent::new(bytes)),
        };
        statistics(&elements, &CancelToken::default()).unwrap()
    }

    #[test]
    fn statistics_of_too_many_numbers_are_refused() {
        let elements = Elements {
            datatype: int(2),
            dims: Some(vec![limits::H5GROVE_VALUES + 1]),
            content: Box::new(InMemoryContent::new(Vec::new())),
        };
        let refused = statistics(&elements, &CancelToken::default());
        assert!(matches!(refused, Err(Error::Limit { .. })), "{refused:?}");
    }

    /// Expected: arithmetic. The mean of -1, 0, 2 and 5 is 1.5, and their variance 5.25.
    #[test]
    fn statistics_of_numbers() {
        let reals = [-1.0, 0.0, f64::NAN, 2.0, f64::INFINITY, 5.0];
        let bytes = reals.into_iter().flat_map(f64::to_le_bytes).collect();
        let expected = format!(
            "{{\"strict_positive_min\": 2.0, \"positive_min\": 0.0, \"min\": -1.0, \"max\": 5.0, \
             \"mean\": 1.5, \"std\": {}}}",
            5.25_f64.sqrt()
        );
        assert_eq!(of(Datatype::ieee(8, ByteOrder::Little), bytes, 6), expected);
        let integers = [-1_i16, -2].into_iter().flat_map(i16::to_le_bytes);
        let expected = "{\"strict_positive_min\": null, \"positive_min\": null, \"min\": -2, \
                        \"max\": -1, \"mean\": -1, \"std\": 0}";
        assert_eq!(of(int(2), integers.collect(), 2), expected);
        assert!(of(int(2), Vec::new(), 0).ends_with("\"std\": null}"));
    }
}
