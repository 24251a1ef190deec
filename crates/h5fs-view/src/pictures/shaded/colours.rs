//! Colour maps, which assign a colour to each position in a range.
//!
//! Viridis is from Matplotlib (CC0). Its brightness grows with the value, also in print and for
//! colour-blind readers. Values on both sides of 0 use red and blue from ColorBrewer's RdBu.
//! Pictures use grey.

/// A colour map: the colour of each position between the lowest and the highest value of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourMap {
    Grey,
    Viridis,
    /// Blue below the middle, and red above it.
    Diverging,
}

/// Evenly spaced colours of viridis.
const VIRIDIS: [u32; 11] = [
    0x44_0154, 0x48_2475, 0x41_4487, 0x35_5f8d, 0x2a_788e, 0x21_918c, 0x22_a884, 0x44_bf70,
    0x7a_d151, 0xbd_df26, 0xfd_e725,
];

/// Evenly spaced colours from blue over white to red.
const DIVERGING: [u32; 11] = [
    0x05_3061, 0x21_66ac, 0x43_93c3, 0x92_c5de, 0xd1_e5f0, 0xf7_f7f7, 0xfd_dbc7, 0xf4_a582,
    0xd6_604d, 0xb2_182b, 0x67_001f,
];

const GREY: [u32; 2] = [0, 0xff_ffff];

impl ColourMap {
    /// Returns the red, green and blue at the position `share` in the range, from 0 (lower end) to
    /// 1 (upper end).
    pub(crate) fn colour_at(self, share: f64) -> [u8; 3] {
        let known = self.stops();
        let last = known.len() - 1;
        let place = share.clamp(0.0, 1.0) * last as f64;
        let before = (place.floor() as usize).min(last - 1);
        let part = place - before as f64;
        let [from, to] = [known[before], known[before + 1]].map(split_colour);
        std::array::from_fn(|colour| {
            let [from, to] = [from, to].map(|parts| f64::from(parts[colour]));
            (from + (to - from) * part).round() as u8
        })
    }

    /// Returns the name of the colour map for a picture's legend on a page.
    pub fn name(self) -> &'static str {
        match self {
            ColourMap::Grey => "grey",
            ColourMap::Viridis => "viridis",
            ColourMap::Diverging => "blue below 0, red above",
        }
    }

    fn stops(self) -> &'static [u32] {
        match self {
            ColourMap::Grey => &GREY,
            ColourMap::Viridis => &VIRIDIS,
            ColourMap::Diverging => &DIVERGING,
        }
    }
}

/// Splits a colour into red, green and blue.
fn split_colour(colour: u32) -> [u8; 3] {
    let [_, parts @ ..] = colour.to_be_bytes();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: `matplotlib.colormaps["viridis"]` at the same positions, which linear
    /// interpolation between eleven colours approximates.
    #[test]
    fn the_colours_of_a_map() {
        assert_eq!(ColourMap::Viridis.colour_at(0.0), [68, 1, 84]);
        assert_eq!(ColourMap::Viridis.colour_at(0.5), [33, 145, 140]);
        assert_eq!(ColourMap::Viridis.colour_at(1.0), [253, 231, 37]);
        assert_eq!(ColourMap::Grey.colour_at(0.5), [128, 128, 128]);
        assert_eq!(ColourMap::Grey.colour_at(-3.0), [0, 0, 0]);
        assert_eq!(ColourMap::Diverging.colour_at(0.5), [247, 247, 247]);
    }

    /// Higher values are lighter (luminance by Rec. 709).
    #[test]
    fn viridis_grows_lighter() {
        let light = |share: f64| {
            let [red, green, blue] = ColourMap::Viridis.colour_at(share).map(f64::from);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let all: Vec<f64> = (0..=100)
            .map(|part| light(f64::from(part) / 100.0))
            .collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
