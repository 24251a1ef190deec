//! Fuzzes names and selectors. A name that is shown must lead back to the original. Any other name
//! is rejected or parsed.

#![no_main]

use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::selector::labels::LabelSelector;
use h5fs_reader::model::selector::split::split_selector;
use h5fs_tree::name::{escape, is_shortened, unescape};

libfuzzer_sys::fuzz_target!(|name: &[u8]| {
    for at_root in [true, false] {
        let shown = escape(name, at_root);
        assert!(!shown.is_empty() && shown.len() <= 255);
        assert!(!shown.contains(&b'/') && !shown.contains(&0));
        assert!(shown != b"." && shown != b"..");
        if !is_shortened(&shown) {
            assert_eq!(unescape(&shown, at_root).as_deref(), Some(name));
        }
        if let Some(real) = unescape(name, at_root) {
            assert_eq!(escape(&real, at_root), name);
        }
    }
    let _ = Selector::parse(name);
    let _ = LabelSelector::parse(name);
    for (array, selector) in split_selector(name) {
        assert_eq!([array, selector].concat(), name);
        let _ = Selector::parse(selector);
    }
});
