//! One option of a mount: a flag, and a word of `-o`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::ArgAction;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, value_parser};

use crate::cli::options::settings::Settings;
use crate::cli::options::values::{refuse_value, required_value};

/// An option of a mount, as a row of a table.
pub(super) struct MountOption {
    /// The flag, without its two hyphens.
    pub(super) flag: &'static str,
    /// The word of `-o`.
    pub(super) word: &'static str,
    pub(super) help: &'static str,
    /// The default value in the help. `None` if the help does not name it.
    pub(super) default: Option<&'static str>,
    pub(super) value: OptionValue,
}

/// The kind of value that an option takes, and the function that applies the value to the settings.
pub(super) enum OptionValue {
    /// No value.
    Nothing(fn(&mut Settings)),
    /// A text. The first field is the placeholder for the text in the help.
    Text(&'static str, fn(&mut Settings, &str) -> Result<(), String>),
    /// One of several fixed texts. The first field is the placeholder for the text in the help.
    Choice(
        &'static str,
        &'static [&'static str],
        fn(&mut Settings, &str) -> Result<(), String>,
    ),
    /// A path. The first field is the placeholder for the path in the help.
    Path(&'static str, fn(&mut Settings, &Path)),
    /// A path that may be left out. The first field is the placeholder for the path in the help.
    /// Without a path, the option uses a default file.
    MaybePath(&'static str, fn(&mut Settings, Option<&Path>)),
}

impl MountOption {
    pub(super) fn apply(&self, to: &mut Settings, value: Option<&str>) -> Result<(), String> {
        match self.value {
            OptionValue::Nothing(set) => refuse_value(value).map(|()| set(to)),
            OptionValue::Text(_, set) | OptionValue::Choice(_, _, set) => {
                set(to, required_value(value)?)
            }
            OptionValue::Path(_, set) => {
                set(to, Path::new(required_value(value)?));
                Ok(())
            }
            OptionValue::MaybePath(_, set) => {
                let given = value.map(|text| required_value(Some(text))).transpose()?;
                set(to, given.map(Path::new));
                Ok(())
            }
        }
    }

    /// Returns the clap definition of the option's flag.
    pub(super) fn argument(&self) -> Arg {
        let flag = Arg::new(self.flag).long(self.flag).help(self.explanation());
        match self.value {
            OptionValue::Nothing(_) => flag.action(ArgAction::SetTrue),
            OptionValue::Text(name, set) | OptionValue::Choice(name, _, set) => flag
                .value_name(name)
                .value_parser(move |text: &str| -> Result<String, String> {
                    set(&mut Settings::default(), text)?;
                    Ok(text.to_owned())
                }),
            OptionValue::Path(name, _) => {
                flag.value_name(name).value_parser(value_parser!(PathBuf))
            }
            OptionValue::MaybePath(name, _) => flag
                .value_name(name)
                .value_parser(value_parser!(PathBuf))
                .num_args(0..=1)
                .require_equals(true),
        }
    }

    /// Returns the help text of the option, with the default value.
    pub(super) fn explanation(&self) -> String {
        match self.default {
            Some(default) => format!("{} [default: {default}]", self.help),
            None => self.help.to_owned(),
        }
    }

    /// Applies the flag to the settings `to`, if `given` contains the flag.
    pub(super) fn apply_flag(&self, to: &mut Settings, given: &ArgMatches) -> Result<(), String> {
        match self.value {
            OptionValue::Nothing(set) if given.get_flag(self.flag) => set(to),
            OptionValue::Nothing(_) => {}
            OptionValue::Text(_, set) | OptionValue::Choice(_, _, set) => {
                if let Some(text) = given.get_one::<String>(self.flag) {
                    set(to, text)?;
                }
            }
            OptionValue::Path(_, set) => {
                if let Some(path) = given.get_one::<PathBuf>(self.flag) {
                    set(to, path);
                }
            }
            OptionValue::MaybePath(_, set) if self.was_given(given) => {
                set(
                    to,
                    given.get_one::<PathBuf>(self.flag).map(PathBuf::as_path),
                );
            }
            OptionValue::MaybePath(..) => {}
        }
        Ok(())
    }

    /// Appends the flag to `words` as the user wrote it, if `given` contains the flag.
    pub(super) fn repeat_flag(&self, given: &ArgMatches, words: &mut Vec<OsString>) {
        let mut flag = OsString::from(format!("--{}", self.flag));
        match (&self.value, given.get_raw(self.flag)) {
            (OptionValue::Nothing(_), _) if given.get_flag(self.flag) => words.push(flag),
            (OptionValue::Nothing(_), _) => {}
            (OptionValue::MaybePath(..), None) if self.was_given(given) => words.push(flag),
            (_, values) => {
                for value in values.into_iter().flatten() {
                    flag.push("=");
                    flag.push(value);
                    words.push(flag.clone());
                }
            }
        }
    }

    /// Returns whether `given` contains the flag, with or without a value.
    fn was_given(&self, given: &ArgMatches) -> bool {
        given.value_source(self.flag) == Some(ValueSource::CommandLine)
    }

    /// Returns the line of the option's word in the help of `-o`.
    pub(super) fn synopsis(&self) -> String {
        match self.value {
            OptionValue::Nothing(_) => self.word.to_owned(),
            OptionValue::Text(name, _)
            | OptionValue::Choice(name, ..)
            | OptionValue::Path(name, _) => {
                format!("{}={name}", self.word)
            }
            OptionValue::MaybePath(name, _) => format!("{}[={name}]", self.word),
        }
    }
}
