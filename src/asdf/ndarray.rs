//! stub
/// x
pub fn is_tag(tag: &str) -> bool {
    tag.ends_with("core/ndarray-1.0.0")
}
