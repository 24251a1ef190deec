//! The object modification time messages, old and new (HDF5 3.0, IV.A.2.o and IV.A.2.s).

use crate::error::Result;
use crate::wire::Cursor;

/// Reads the body of the new modification time message. Returns the time in seconds since 1970 UTC.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<i64> {
    cursor.read_version(1..=1)?;
    cursor.skip(3)?;
    Ok(i64::from(cursor.u32()?))
}

/// Reads the body of the old modification time message, the text `YYYYMMDDhhmmss` in UTC. Returns
/// the time in seconds since 1970 UTC.
pub(crate) fn read_old(cursor: &mut Cursor<'_>) -> Result<i64> {
    let year = digits(cursor, 4)?;
    let month = digits(cursor, 2)?;
    let day = digits(cursor, 2)?;
    let time = [digits(cursor, 2)?, digits(cursor, 2)?, digits(cursor, 2)?];
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && time
            .iter()
            .zip([23, 59, 60])
            .all(|(part, most)| *part <= most);
    if !in_range {
        return Err(cursor.corrupt("not a date"));
    }
    let seconds = time
        .iter()
        .fold(0_i64, |sum, part| sum.wrapping_mul(60).wrapping_add(*part));
    Ok(days_since_1970(year, month, day)
        .wrapping_mul(86_400)
        .wrapping_add(seconds))
}

fn digits(cursor: &mut Cursor<'_>, count: usize) -> Result<i64> {
    let text = cursor.read_bytes(count)?;
    let text = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<u16>().ok());
    text.map(i64::from)
        .ok_or_else(|| cursor.corrupt("not decimal digits"))
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar, for years 0 to 9999.
///
/// Years are counted from March, so that the leap day is at a year's end. The number of days before
/// a month is then a linear function of the month.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    const FROM_YEAR_0_TO_1970: i64 = 719_468;
    let (year, month) = match month {
        ..=2 => (year.wrapping_sub(1), month.wrapping_add(9)),
        _ => (year, month.wrapping_sub(3)),
    };
    let leap_days = year.div_euclid(4).wrapping_sub(year.div_euclid(100));
    let leap_days = leap_days.wrapping_add(year.div_euclid(400));
    let days_before_month = month.wrapping_mul(153).wrapping_add(2).div_euclid(5);
    [
        year.wrapping_mul(365),
        leap_days,
        days_before_month,
        day.wrapping_sub(1),
    ]
    .iter()
    .fold(-FROM_YEAR_0_TO_1970, |sum, days| sum.wrapping_add(*days))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &[u8]) -> Result<i64> {
        read_old(&mut Cursor::new(text, 0, "test"))
    }

    /// Expected values from `date -u -d '…' +%s`.
    #[test]
    fn old_times_are_utc() {
        assert_eq!(seconds(b"19700101000000"), Ok(0));
        assert_eq!(seconds(b"20000229235959"), Ok(951_868_799));
        assert_eq!(seconds(b"19980309123456"), Ok(889_446_896));
        assert!(seconds(b"20001301000000").is_err());
        assert!(seconds(b"2000").is_err());
    }
}
