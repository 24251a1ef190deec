//! Round times for the axis of a plot: whole hours, days, months or years.

use std::iter;

use h5fs_reader::model::number::append_formatted;

use crate::calendar::Date;
use crate::time::{DAY_SECONDS, TicksSinceEpoch, TimeUnits};

/// Round times for the axis of a plot, with their texts.
#[derive(Debug, PartialEq, Eq)]
pub struct RoundTimes {
    /// Each round time with its text, which has only those parts of the date and the time that the
    /// distance between the times needs.
    pub times: Vec<(TicksSinceEpoch, String)>,
    /// The date that all times share, if their texts contain only the time of day; otherwise
    /// `None`.
    pub common_day: Option<String>,
}

/// The distance between two neighbouring round times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundTimeInterval {
    Seconds(i64),
    /// This many days, counted from the first day of each month.
    Days(u8),
    Months(u8),
    Years(i64),
}

/// Numbers of seconds that are round within a day, such as 5 minutes or 6 hours.
const ROUND_SECONDS: [i64; 17] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
];
const ROUND_DAYS: [u8; 4] = [1, 2, 5, 10];
const ROUND_MONTHS: [u8; 3] = [1, 3, 6];

impl RoundTimeInterval {
    /// Returns all steps, shortest first, with their approximate lengths in seconds.
    fn all() -> impl Iterator<Item = (RoundTimeInterval, i64)> {
        let seconds = ROUND_SECONDS.map(|seconds| (RoundTimeInterval::Seconds(seconds), seconds));
        let days =
            ROUND_DAYS.map(|days| (RoundTimeInterval::Days(days), i64::from(days) * DAY_SECONDS));
        let months = ROUND_MONTHS.map(|months| {
            (
                RoundTimeInterval::Months(months),
                i64::from(months) * 30 * DAY_SECONDS,
            )
        });
        let powers = iter::successors(Some(1_i64), |power| power.checked_mul(10));
        let years = powers.flat_map(|power| [1, 2, 5].map(|factor| power.saturating_mul(factor)));
        let years = years.map(|years| {
            (
                RoundTimeInterval::Years(years),
                years.saturating_mul(365 * DAY_SECONDS),
            )
        });
        seconds.into_iter().chain(days).chain(months).chain(years)
    }

    /// Returns the maximum number of steps for which the texts fit next to each other on the axis.
    fn max_steps(self) -> i64 {
        match self {
            RoundTimeInterval::Seconds(_) => 4,
            RoundTimeInterval::Days(_)
            | RoundTimeInterval::Months(_)
            | RoundTimeInterval::Years(_) => 5,
        }
    }
}

impl TimeUnits {
    /// Returns round times from `first` to `last`, few enough that their texts fit next to each
    /// other on the axis. The result is empty if no whole second is in the range.
    pub fn round_times(&self, first: TicksSinceEpoch, last: TicksSinceEpoch) -> RoundTimes {
        let per_second = self.tick.per_second();
        let (first, last) = (
            -(-first).div_euclid(per_second),
            last.div_euclid(per_second),
        );
        let width = last.saturating_sub(first);
        let fits = |(step, seconds): &(RoundTimeInterval, i64)| {
            width / (*seconds).max(1) <= step.max_steps()
        };
        let step = RoundTimeInterval::all().find(fits);
        let step = step.map_or(RoundTimeInterval::Seconds(1), |(step, _)| step);
        let seconds: Vec<i64> = self.round_seconds(step, first, last);
        let day = match (step, seconds.first(), seconds.last()) {
            (RoundTimeInterval::Seconds(_), Some(&one), Some(&other))
                if self.day_of(one) == self.day_of(other) =>
            {
                Some(self.date_text(one, 3))
            }
            _ => None,
        };
        let is_one_day = day.is_some();
        let text = |seconds| match step {
            RoundTimeInterval::Years(_) => self.date_text(seconds, 1),
            RoundTimeInterval::Months(_) => self.date_text(seconds, 2),
            RoundTimeInterval::Days(_) => self.date_text(seconds, 3),
            RoundTimeInterval::Seconds(step) => {
                let time = time_text(seconds, step % 60 != 0);
                if is_one_day {
                    time
                } else {
                    format!("{} {time}", self.date_text(seconds, 3))
                }
            }
        };
        let times = seconds.iter().filter_map(|&seconds| {
            let time = seconds.checked_mul(per_second)?;
            Some((time, text(seconds)))
        });
        RoundTimes {
            times: times.collect(),
            common_day: day,
        }
    }

    /// Returns the round times from `first` to `last` that are one `step` apart, all in seconds
    /// since 1970-01-01.
    fn round_seconds(&self, step: RoundTimeInterval, first: i64, last: i64) -> Vec<i64> {
        let is_within = |seconds: &i64| (first..=last).contains(seconds);
        match step {
            RoundTimeInterval::Seconds(step) => {
                let whole = -(-first).div_euclid(step) * step;
                let next = |seconds: &i64| seconds.checked_add(step);
                iter::successors(Some(whole), next)
                    .take_while(is_within)
                    .collect()
            }
            RoundTimeInterval::Days(step) => {
                let days = self.day_of(first)..=self.day_of(last);
                let is_round = |day: &i64| {
                    let day = self.calendar.date_of_day(*day).day;
                    // The last day of a month would be too close to the first day of the next
                    // month.
                    step == 1 || (day - 1).is_multiple_of(step) && day < 31
                };
                let days = days.filter(is_round);
                days.map(|day| day * DAY_SECONDS)
                    .filter(is_within)
                    .collect()
            }
            RoundTimeInterval::Months(step) => {
                let (begin, end) = (self.date_of(first), self.date_of(last));
                let months = (begin.year..=end.year).flat_map(|year| {
                    (1..=12)
                        .step_by(step.into())
                        .map(move |month| (year, month))
                });
                let begun = months.filter_map(|(year, month)| self.month_start(year, month));
                begun.filter(is_within).collect()
            }
            RoundTimeInterval::Years(step) => {
                let (begin, end) = (self.date_of(first).year, self.date_of(last).year);
                let years = begin.div_euclid(step)..=end.div_euclid(step);
                let begun =
                    years.filter_map(|number| self.month_start(number.checked_mul(step)?, 1));
                begun.filter(is_within).collect()
            }
        }
    }

    /// Returns the time at which a month begins, in seconds since 1970-01-01. Returns `None` if the
    /// calendar does not have its first day, or if the seconds overflow.
    fn month_start(&self, year: i64, month: u8) -> Option<i64> {
        let day = self.calendar.day_number(Date {
            year,
            month,
            day: 1,
        })?;
        day.checked_mul(DAY_SECONDS)
    }

    fn day_of(&self, seconds: i64) -> i64 {
        seconds.div_euclid(DAY_SECONDS)
    }

    fn date_of(&self, seconds: i64) -> Date {
        self.calendar.date_of_day(self.day_of(seconds))
    }

    /// Formats the date of a time in seconds since 1970-01-01, with the first `parts` of: year,
    /// month, day.
    fn date_text(&self, seconds: i64, parts: usize) -> String {
        let date = self.date_of(seconds);
        let year = self.calendar.written_year(date.year);
        let digits = if year < 0 { 5 } else { 4 };
        let mut text = Vec::new();
        append_formatted(&mut text, format_args!("{year:0digits$}"));
        for part in [date.month, date.day].iter().take(parts - 1) {
            append_formatted(&mut text, format_args!("-{part:02}"));
        }
        String::from_utf8(text).unwrap_or_default()
    }
}

fn time_text(seconds: i64, has_seconds: bool) -> String {
    let second = seconds.rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    if has_seconds {
        format!("{hour:02}:{minute:02}:{second:02}")
    } else {
        format!("{hour:02}:{minute:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored_type::ExactNumber;
    use proptest::prelude::*;

    fn round(units: &str, calendar: &str, first: f64, last: f64) -> (Vec<String>, Option<String>) {
        let units = TimeUnits::parse(units.as_bytes(), Some(calendar.as_bytes())).unwrap();
        let time = |number| {
            units
                .convert_to_ticks(ExactNumber::Real(number))
                .unwrap()
                .unwrap()
        };
        let round = units.round_times(time(first), time(last));
        for (time, text) in &round.times {
            let mut whole = Vec::new();
            units.write(*time, &mut whole);
            let whole = String::from_utf8(whole).unwrap().replace('T', " ");
            let day = round
                .common_day
                .clone()
                .map(|day| day + " ")
                .unwrap_or_default();
            assert!(whole.starts_with(&(day + text)), "{whole} {text}");
        }
        let texts = round.times.into_iter().map(|(_, text)| text);
        (texts.collect(), round.common_day)
    }

    fn days(first: f64, last: f64) -> Vec<String> {
        round("days since 2000-01-01", "standard", first, last).0
    }

    #[test]
    fn round_times_are_natural_dates() {
        assert_eq!(days(0.0, 3652.0), ["2000", "2002", "2004", "2006", "2008"]);
        assert_eq!(
            days(0.0, 365.0),
            ["2000-01", "2000-04", "2000-07", "2000-10"]
        );
        assert_eq!(
            days(20.0, 70.0),
            [
                "2000-01-21",
                "2000-02-01",
                "2000-02-11",
                "2000-02-21",
                "2000-03-01",
                "2000-03-11"
            ]
        );
        assert_eq!(days(25.5, 40.0), ["2000-02-01", "2000-02-06"]);
        assert_eq!(days(0.25, 0.5), ["06:00", "08:00", "10:00", "12:00"]);
        let (texts, day) = round("s since 2013-07-01 23:59:00", "standard", 0.0, 20.0);
        assert_eq!(
            texts,
            ["23:59:00", "23:59:05", "23:59:10", "23:59:15", "23:59:20"]
        );
        assert_eq!(day.as_deref(), Some("2013-07-01"));
        let model = round("days since 0001-01-01", "360_day", 0.0, 36_000.0).0;
        assert_eq!(model, ["0020", "0040", "0060", "0080", "0100"]);
    }

    proptest! {
        /// Between any two times, there are at most 8 round times. They are sorted and within the
        /// range.
        #[test]
        fn few_times_between_any_two(a: i64, b: i64, near in 0..10_i64.pow(15), which in 0..4_usize) {
            let calendars = ["standard", "proleptic_gregorian", "noleap", "360_day"];
            let calendar = Some(calendars[which].as_bytes());
            let units = TimeUnits::parse(b"s since 1970-01-01", calendar).unwrap();
            for (a, b) in [(a, b), (a, a.saturating_add(near))] {
                let (first, last) = (a.min(b).max(TicksSinceEpoch::MIN + 1), a.max(b));
                let times = units.round_times(first, last).times;
                prop_assert!(times.len() <= 8, "{times:?}");
                prop_assert!(times.iter().all(|(time, _)| (first..=last).contains(time)));
                prop_assert!(times.is_sorted());
            }
        }
    }
}
