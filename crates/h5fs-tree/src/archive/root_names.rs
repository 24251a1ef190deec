//! Names in the root directory of an archive. There, `.h5fs` is the directory of views. So a file
//! with that name is shown as `%2Eh5fs`, a file called `%2Eh5fs` as `%252Eh5fs`, and so on. All
//! other names are unchanged.

use std::borrow::Cow;
use std::path::{Component, Path};

use crate::name::{self, VIEWS};
use crate::names::symlink;

/// Returns the name in the directory on disk for the name `shown` in the mount. `is_top` says
/// whether the directory is the root of the archive.
pub(super) fn real_name(is_top: bool, shown: &[u8]) -> Cow<'_, [u8]> {
    let real = is_escaped(shown).then(|| name::unescape(shown, true));
    let real = real.flatten().filter(|_| is_top);
    real.map_or(shown.into(), Cow::Owned)
}

/// Returns the name in the mount for the name `real` on disk; the inverse of [`real_name`].
pub(super) fn shown_name(is_top: bool, real: &[u8]) -> Cow<'_, [u8]> {
    if is_top && (real == VIEWS || is_escaped(real)) {
        name::escape(real, true).into()
    } else {
        real.into()
    }
}

/// Returns whether `name` is `%2Eh5fs`, `%252Eh5fs` and so on: the name `.h5fs` with one or more
/// levels of escaping.
fn is_escaped(name: &[u8]) -> bool {
    let mut rest = name.strip_prefix(b"%");
    while let Some(inner) = rest.and_then(|rest| rest.strip_prefix(b"25")) {
        rest = Some(inner);
    }
    rest == Some(b"2Eh5fs")
}

/// Returns the text of a symbolic link with paths on disk replaced by paths in the mount. `path` is
/// the path of the link below the directory `top`, and `text` is the link's text on disk. The text
/// is replaced if it is absolute and leads into `top`, or if its target is shown under an escaped
/// name. Names below `.h5fs/original` are never escaped. Returns `None` if the text stays as it is.
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
    Some(symlink::relative_link_text(&names(from)?, &target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_names_map_back_to_real_names() {
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
    fn links_keep_their_targets() {
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
