//! Finds the words that fit at the end of a command line, from the definition of the command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, Command};

use crate::cli::options;
use crate::cli::text::completions::inside;

/// A word that can complete the command line, with its help text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) word: Vec<u8>,
    pub(super) help: String,
}

/// All words that can complete the command line.
#[derive(Debug, Default)]
pub(super) struct Completions {
    pub(super) candidates: Vec<Candidate>,
    /// Whether file names can also complete the command line.
    pub(super) with_files: bool,
}

/// Returns the words that can complete the last of `words`.
pub(super) fn complete(mut command: Command, words: &[OsString]) -> Completions {
    command.build();
    let Some((current, before)) = words.split_last() else {
        return Completions::default();
    };
    let named = before
        .first()
        .and_then(|word| command.find_subcommand(word));
    let line = TypedLine::read(
        named.unwrap_or(&command),
        &before[usize::from(named.is_some())..],
    );
    let mut found = line.complete_word(current.as_bytes());
    if before.is_empty() {
        let commands = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        found
            .candidates
            .extend(commands.map(|command| candidate(command.get_name(), command.get_about())));
    }
    found
        .candidates
        .retain(|candidate| candidate.word.starts_with(current.as_bytes()));
    found
}

fn candidate(word: impl Into<String>, help: Option<&impl ToString>) -> Candidate {
    let help = help.map(ToString::to_string).unwrap_or_default();
    Candidate {
        word: word.into().into_bytes(),
        help: help.lines().next().unwrap_or_default().to_owned(),
    }
}

/// The words of the command line before the word to complete.
struct TypedLine<'a> {
    command: &'a Command,
    operands: Vec<&'a OsString>,
    /// The option that takes the word to complete as its value.
    awaits_value: Option<&'a Arg>,
    /// Whether `--` has ended the options.
    has_ended_options: bool,
}

impl<'a> TypedLine<'a> {
    fn read(command: &'a Command, words: &'a [OsString]) -> Self {
        let mut line = TypedLine {
            command,
            operands: Vec::new(),
            awaits_value: None,
            has_ended_options: false,
        };
        for word in words {
            match word.as_bytes() {
                _ if line.awaits_value.take().is_some() => {}
                b"--" if !line.has_ended_options => line.has_ended_options = true,
                [b'-', flags @ ..] if !flags.is_empty() && !line.has_ended_options => {
                    line.awaits_value = line.option_awaiting_value(flags);
                }
                _ => line.operands.push(word),
            }
        }
        line
    }

    /// Returns the option that takes the next word as its value, if the last word is `-` followed
    /// by `flags`.
    fn option_awaiting_value(&self, flags: &[u8]) -> Option<&'a Arg> {
        if let Some(name) = flags.strip_prefix(b"-") {
            return self
                .find_long_option(name)
                .filter(|option| takes_value(option));
        }
        let text = str::from_utf8(flags).ok()?;
        let mut letters = text.chars();
        let option = letters.find_map(|letter| {
            let mut options = self.command.get_arguments();
            options.find(|option| option.get_short() == Some(letter) && takes_value(option))
        });
        // Characters after the letter are its value.
        option.filter(|_| letters.next().is_none())
    }

    fn find_long_option(&self, name: &[u8]) -> Option<&'a Arg> {
        let mut options = self.command.get_arguments();
        options.find(|option| {
            option
                .get_long()
                .is_some_and(|long| long.as_bytes() == name)
        })
    }

    /// Returns the words that start with `current` and can follow the typed words.
    fn complete_word(&self, current: &[u8]) -> Completions {
        if let Some(option) = self.awaits_value {
            return complete_value(option, b"", current);
        }
        match current {
            [b'-', b'-', name @ ..] if !self.has_ended_options && name.contains(&b'=') => {
                let equals = current.iter().position(|&byte| byte == b'=').unwrap_or(0);
                let (flag, value) = current.split_at(equals + 1);
                let option = self.find_long_option(&flag[2..equals]);
                option.map_or_else(Completions::default, |option| {
                    complete_value(option, flag, value)
                })
            }
            [b'-', ..] if !self.has_ended_options => self.complete_option(),
            _ => self.complete_operand(current),
        }
    }

    fn complete_option(&self) -> Completions {
        let shown = self
            .command
            .get_arguments()
            .filter(|option| !option.is_hide_set());
        let names = shown.flat_map(|option| {
            let short = option.get_short().map(|letter| format!("-{letter}"));
            let long = option.get_long().map(|name| format!("--{name}"));
            // The long name is more descriptive.
            let name = long.or(short);
            name.map(|name| candidate(name, option.get_help()))
        });
        Completions {
            candidates: names.collect(),
            with_files: false,
        }
    }

    fn complete_operand(&self, current: &[u8]) -> Completions {
        let has_paths = self
            .command
            .get_positionals()
            .any(|operand| operand.get_id() == "more" || operand.get_id() == "paths");
        let names = match self.operands.first() {
            Some(source) if has_paths => inside::complete_path(source, current),
            _ => Vec::new(),
        };
        let names = names.into_iter().map(|word| Candidate {
            word,
            help: String::new(),
        });
        let place = self.operands.len();
        let listed = self.command.get_positionals().nth(place);
        let listed = listed.map(Arg::get_possible_values).unwrap_or_default();
        let listed = listed.iter().map(|value| prefixed(b"", value.get_name()));
        let candidates: Vec<_> = names.chain(listed).collect();
        Completions {
            with_files: candidates.is_empty() && self.accepts_operand(),
            candidates,
        }
    }

    /// Returns whether the command accepts another operand.
    fn accepts_operand(&self) -> bool {
        let ranges = self.command.get_positionals().filter_map(Arg::get_num_args);
        let most = ranges.fold(0_usize, |sum, range| sum.saturating_add(range.max_values()));
        self.operands.len() < most
    }
}

fn takes_value(option: &Arg) -> bool {
    option
        .get_num_args()
        .is_some_and(|range| range.min_values() > 0)
}

/// Returns the values of an option that start with `current`. Each value is preceded by the text
/// `flag`.
fn complete_value(option: &Arg, flag: &[u8], current: &[u8]) -> Completions {
    let name = option.get_value_names().and_then(|names| names.first());
    if option.get_id() == "words" {
        return Completions {
            candidates: complete_option_words(flag, current),
            with_files: false,
        };
    }
    let listed = option.get_possible_values();
    let listed = listed.iter().map(clap::builder::PossibleValue::get_name);
    let choices = options::choices(option.get_id().as_str());
    let all = listed.chain(choices.iter().copied());
    Completions {
        candidates: all.map(|value| prefixed(flag, value)).collect(),
        with_files: name.is_some_and(|name| name == "FILE" || name == "DIRECTORY"),
    }
}

fn prefixed(before: &[u8], text: &str) -> Candidate {
    Candidate {
        word: [before, text.as_bytes()].concat(),
        help: String::new(),
    }
}

/// Returns the words of `-o` that can replace the last word in `current`. Each word is preceded by
/// `flag` and the earlier words of `current`.
fn complete_option_words(flag: &[u8], current: &[u8]) -> Vec<Candidate> {
    let last = current
        .iter()
        .rposition(|&byte| byte == b',')
        .map_or(0, |comma| comma + 1);
    let (before, word) = current.split_at(last);
    let before = [flag, before].concat();
    if let Some(equals) = word.iter().position(|&byte| byte == b'=') {
        let name = String::from_utf8_lossy(&word[..equals]);
        let choices = options::choices(&name).iter();
        return choices
            .map(|choice| prefixed(&before, &format!("{name}={choice}")))
            .collect();
    }
    let all = options::words_with_help().map(|(synopsis, help)| {
        // For a required value, the word ends after `=`. For an optional value, it ends before `=`.
        let end = match (synopsis.find("[="), synopsis.find('=')) {
            (Some(bracket), _) => bracket,
            (None, Some(equals)) => equals + 1,
            (None, None) => synopsis.len(),
        };
        Candidate {
            help,
            ..prefixed(&before, &synopsis[..end])
        }
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    /// Returns the words that fit, and whether file names fit.
    fn completions(line: &[&str]) -> (Vec<String>, bool) {
        let words: Vec<OsString> = line.iter().map(Into::into).collect();
        let found = complete(args::definition(), &words);
        let words = found
            .candidates
            .into_iter()
            .map(|candidate| String::from_utf8(candidate.word).unwrap());
        (words.collect(), found.with_files)
    }

    #[test]
    fn the_first_word_is_a_command_or_a_file() {
        assert_eq!(completions(&["ch"]), (vec!["check".to_owned()], true));
        let (all, _) = completions(&[""]);
        assert!(all.contains(&"ls".to_owned()) && all.contains(&"view".to_owned()));
        assert_eq!(completions(&["a.h5", "ch"]), (vec![], true));
        assert_eq!(completions(&["a.h5", "mnt", ""]), (vec![], false));
    }

    #[test]
    fn no_hidden_flag_is_named() {
        for (command, hidden) in [
            ("check", "--records"),
            ("ls", "--terminal"),
            ("view", "--at"),
        ] {
            let (flags, with_files) = completions(&[command, "a.h5", "--"]);
            assert!(flags.contains(&"--force".to_owned()), "{flags:?}");
            assert!(
                !flags.contains(&hidden.to_owned()) && !with_files,
                "{flags:?}"
            );
        }
    }

    #[test]
    fn values_of_options() {
        let policies = ["none", "within", "any"].map(str::to_owned).to_vec();
        assert_eq!(
            completions(&["a.h5", "mnt", "--external", ""]),
            (policies, false)
        );
        let one = |word: &str| (vec![word.to_owned()], false);
        assert_eq!(completions(&["--external=w"]), one("--external=within"));
        assert_eq!(completions(&["ls", "--sandbox", "of"]), one("off"));
        assert_eq!(completions(&["ls", "-lj", ""]), (vec![], false));
        assert_eq!(completions(&["ls", "-lj4", "a"]), (vec![], true));
        assert_eq!(completions(&["--log-file", "a"]), (vec![], true));
        assert_eq!(completions(&["--completions", "ba"]), one("bash"));
        assert_eq!(completions(&["--", "--external", "--ex"]), (vec![], true));
    }

    #[test]
    fn cache_actions_are_completed_before_the_directory() {
        let acts = ["list", "trim", "clear"].map(str::to_owned).to_vec();
        assert_eq!(completions(&["cache", ""]), (acts, false));
        assert_eq!(
            completions(&["cache", "t"]),
            (vec!["trim".to_owned()], false)
        );
        assert_eq!(completions(&["cache", "trim", ""]), (vec![], true));
        assert_eq!(completions(&["cache", "trim", "a", ""]), (vec![], false));
        assert_eq!(
            completions(&["prefetch", "--disk-cache", ""]),
            (vec![], true)
        );
    }

    #[test]
    fn words_of_mount_options_are_completed() {
        let one = |word: &str| (vec![word.to_owned()], false);
        assert_eq!(
            completions(&["a.h5", "mnt", "-o", "allow"]),
            one("allow_other")
        );
        assert_eq!(completions(&["a.h5", "mnt", "-o", "net"]), one("netrc"));
        assert_eq!(completions(&["-o", "force,exter"]), one("force,external="));
        assert_eq!(
            completions(&["-o", "force,external=a"]),
            one("force,external=any")
        );
        assert_eq!(
            completions(&["view", "-o", "disk_cache_"]),
            one("disk_cache_size=")
        );
    }
}
