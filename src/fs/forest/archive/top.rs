//! Names at the top of a directory that is shown: `.h5fs` is the directory of views there, so a file
//! of that name is shown as `%2Eh5fs`, a file of this name as `%252Eh5fs`, and so on. All other
//! names are as they are.

use std::borrow::Cow;
use std::path::{Component, Path};

use crate::fs::name::{self, VIEWS};
use crate::fs::names::symlink;

/// The name of what a directory, which may be the top, shows as `shown`.
pub(super) fn real_name(is_top: bool, shown: &[u8]) -> Cow<'_, [u8]> {
    let real = is_escaped(shown).then(|| name::unescape(shown, true));
    let real = real.flatten().filter(|_| is_top);
    real.map_or(shown.into(), Cow::Owned)
}

/// The reverse of [`real_name`].
pub(super) fn shown_name(is_top: bool, real: &[u8]) -> Cow<'_, [u8]> {
    if is_top && (real == VIEWS || is_escaped(real)) {
        name::escape(real, true).into()
    } else {
        real.into()
    }
}

/// Whether a name is that of the views, escaped once or more often.
fn is_escaped(name: &[u8]) -> bool {
    let mut rest = name.strip_prefix(b"%");
    while let Some(inner) = rest.and_then(|rest| rest.strip_prefix(b"25")) {
        rest = Some(inner);
    }
    rest == Some(b"2Eh5fs")
}

/// The text of a link at `path`, beneath the directory `top`, whose own text is `text`: it leads to
/// the same place in the mount where it is absolute and leads into the directory, or leads to a name
/// that is escaped. None is among the originals.
pub(super) fn link_text(
    top: &Path,
    (path, is_original): (&Path, bool),
    text: &Path,
) -> Option<Vec<u8>> {
    let from = path.parent().unwrap_or(Path::new(""));
    let names = |path: &Path| -> Option<Vec<Box<[u8]>>> {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => {
                    let name = name.as_encoded_bytes();
                    names.push(shown_name(!is_original && names.is_empty(), name).into());
                }
                Component::ParentDir => drop(names.pop()?),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(names)
    };
    let target = match text.strip_prefix(top) {
        Ok(inside)
            if inside
                .components()
                .all(|name| matches!(name, Component::Normal(_))) =>
        {
            names(inside)?
        }
        _ => {
            let target = names(&from.join(text))?;
            let first = target.first()?;
            if !is_escaped(first) {
                return None;
            }
            target
        }
    };
    Some(symlink::relative(&names(from)?, &target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_one_name() {
        let pairs: [(&[u8], &[u8]); 4] = [
            (b".h5fs", b"%2Eh5fs"),
            (b"%2Eh5fs", b"%252Eh5fs"),
            (b"%252Eh5fs", b"%25252Eh5fs"),
            (b"%2Eh5", b"%2Eh5"),
        ];
        for (real, shown) in pairs {
            assert_eq!(&*shown_name(true, real), shown);
            assert_eq!(&*real_name(true, shown), real);
            assert_eq!(&*shown_name(false, real), real);
            assert_eq!(&*real_name(false, real), real);
        }
    }

    #[test]
    fn a_link_leads_where_it_led() {
        let text = |path: &str, text: &str| {
            let text = link_text(Path::new("/top"), (Path::new(path), false), Path::new(text));
            text.map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(text("a", ".h5fs/x").as_deref(), Some("%2Eh5fs/x"));
        assert_eq!(text("a/b", "../.h5fs/x").as_deref(), Some("../%2Eh5fs/x"));
        assert_eq!(text("a", "/top/.h5fs/x").as_deref(), Some("%2Eh5fs/x"));
        let original = link_text(
            Path::new("/top"),
            (Path::new("a"), true),
            Path::new(".h5fs"),
        );
        assert_eq!(original, None);
        assert_eq!(text("a/b", "/top/c/d").as_deref(), Some("../c/d"));
        for kept in [
            "c/d",
            "../c",
            ".h5fs",
            "/elsewhere/.h5fs",
            "../../../.h5fs",
            "x/../.h5fs",
        ] {
            assert_eq!(text("a/b", kept), None, "{kept}");
        }
    }
}
