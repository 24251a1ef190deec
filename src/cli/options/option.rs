//! One option of a mount: a flag, and a word of `-o`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::ArgAction;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, value_parser};

use crate::cli::options::settings::Settings;
use crate::cli::options::values::{needed, unneeded};

/// One option, as a row of a table.
pub(super) struct MountOption {
    /// The flag, without its two hyphens.
    pub(super) flag: &'static str,
    /// The word under `-o`.
    pub(super) word: &'static str,
    pub(super) help: &'static str,
    /// The default that the help shows, if it is worth stating.
    pub(super) default: Option<&'static str>,
    pub(super) takes: Takes,
}

/// The value that an option takes, and the function that applies it.
pub(super) enum Takes {
    /// No value.
    Nothing(fn(&mut Settings)),
    /// A text, with its placeholder in the help.
    Text(&'static str, fn(&mut Settings, &str) -> Result<(), String>),
    /// One of a list of texts, with its placeholder in the help.
    Choice(
        &'static str,
        &'static [&'static str],
        fn(&mut Settings, &str) -> Result<(), String>,
    ),
    /// A path, with its placeholder in the help.
    Path(&'static str, fn(&mut Settings, &Path)),
    /// An optional path, with its placeholder in the help. Without a path, the option uses the
    /// usual file.
    MaybePath(&'static str, fn(&mut Settings, Option<&Path>)),
}

impl MountOption {
    pub(super) fn set(&self, to: &mut Settings, value: Option<&str>) -> Result<(), String> {
        match self.takes {
            Takes::Nothing(set) => unneeded(value).map(|()| set(to)),
            Takes::Text(_, set) | Takes::Choice(_, _, set) => set(to, needed(value)?),
            Takes::Path(_, set) => {
                set(to, Path::new(needed(value)?));
                Ok(())
            }
            Takes::MaybePath(_, set) => {
                let given = value.map(|text| needed(Some(text))).transpose()?;
                set(to, given.map(Path::new));
                Ok(())
            }
        }
    }

    /// Returns the option as a clap flag.
    pub(super) fn argument(&self) -> Arg {
        let flag = Arg::new(self.flag).long(self.flag).help(self.explanation());
        match self.takes {
            Takes::Nothing(_) => flag.action(ArgAction::SetTrue),
            Takes::Text(name, set) | Takes::Choice(name, _, set) => flag
                .value_name(name)
                .value_parser(move |text: &str| -> Result<String, String> {
                    set(&mut Settings::default(), text)?;
                    Ok(text.to_owned())
                }),
            Takes::Path(name, _) => flag.value_name(name).value_parser(value_parser!(PathBuf)),
            Takes::MaybePath(name, _) => flag
                .value_name(name)
                .value_parser(value_parser!(PathBuf))
                .num_args(0..=1)
                .require_equals(true),
        }
    }

    /// Returns the help text with the default.
    pub(super) fn explanation(&self) -> String {
        match self.default {
            Some(default) => format!("{} [default: {default}]", self.help),
            None => self.help.to_owned(),
        }
    }

    /// Applies the flag to `to` if it was given.
    pub(super) fn set_flag(&self, to: &mut Settings, given: &ArgMatches) -> Result<(), String> {
        match self.takes {
            Takes::Nothing(set) if given.get_flag(self.flag) => set(to),
            Takes::Nothing(_) => {}
            Takes::Text(_, set) | Takes::Choice(_, _, set) => {
                if let Some(text) = given.get_one::<String>(self.flag) {
                    set(to, text)?;
                }
            }
            Takes::Path(_, set) => {
                if let Some(path) = given.get_one::<PathBuf>(self.flag) {
                    set(to, path);
                }
            }
            Takes::MaybePath(_, set) if self.was_given(given) => {
                set(
                    to,
                    given.get_one::<PathBuf>(self.flag).map(PathBuf::as_path),
                );
            }
            Takes::MaybePath(..) => {}
        }
        Ok(())
    }

    /// Appends the flag to `words` as it was given, if it was given.
    pub(super) fn repeat_flag(&self, given: &ArgMatches, words: &mut Vec<OsString>) {
        let mut flag = OsString::from(format!("--{}", self.flag));
        match (&self.takes, given.get_raw(self.flag)) {
            (Takes::Nothing(_), _) if given.get_flag(self.flag) => words.push(flag),
            (Takes::Nothing(_), _) => {}
            (Takes::MaybePath(..), None) if self.was_given(given) => words.push(flag),
            (_, values) => {
                for value in values.into_iter().flatten() {
                    flag.push("=");
                    flag.push(value);
                    words.push(flag.clone());
                }
            }
        }
    }

    /// Returns whether the flag was given, with or without a value.
    fn was_given(&self, given: &ArgMatches) -> bool {
        given.value_source(self.flag) == Some(ValueSource::CommandLine)
    }

    /// Returns the option as the help lists it under `-o`.
    pub(super) fn synopsis(&self) -> String {
        match self.takes {
            Takes::Nothing(_) => self.word.to_owned(),
            Takes::Text(name, _) | Takes::Choice(name, ..) | Takes::Path(name, _) => {
                format!("{}={name}", self.word)
            }
            Takes::MaybePath(name, _) => format!("{}[={name}]", self.word),
        }
    }
}
