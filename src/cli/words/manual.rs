//! The manual pages: texts, and what the definition of the command line and the tables of the
//! options and views say.

mod roff;

use clap::{Arg, Command};

use crate::cli::options::{REMOTE, words_with_help};
use crate::fs::GUIDE;
use roff::Page;

/// The heading of the options that print something and exit.
pub(in crate::cli) const PRINTING: &str = "Printing";

/// The day on which the texts of the pages were last looked at.
const DATE: &str = "2026-11-26";

/// The page h5fs(1) of `command`: one for all commands, since they share their options.
pub(in crate::cli) fn program(mut command: Command) -> Vec<u8> {
    command.build();
    let made = |name: &str| match name {
        "synopsis" => synopsis(&command),
        "views" => paths_of_views(),
        "options" => arguments(below(&command, None)),
        "remote" => arguments(below(&command, Some(REMOTE))),
        "printing" => arguments(below(&command, Some(PRINTING))),
        "commands" => commands(&command),
        "common" => arguments(common(&command)),
        _ => String::new(),
    };
    page("h5fs", 1, include_str!("manual/h5fs.md"), made)
}

/// The page mount.h5fs(8): mount(8)'s way to h5fs.
pub(in crate::cli) fn mount_helper() -> Vec<u8> {
    let made = |name: &str| match name {
        "words" => words(),
        _ => String::new(),
    };
    page("mount.h5fs", 8, include_str!("manual/mount.h5fs.md"), made)
}

/// The page h5fs-views(7): the files beneath `.h5fs`.
pub(in crate::cli) fn views() -> Vec<u8> {
    let made = |name: &str| match name {
        "views" => guide(),
        _ => String::new(),
    };
    page("h5fs-views", 7, include_str!("manual/h5fs-views.md"), made)
}

fn page(name: &str, section: u8, text: &str, made: impl Fn(&str) -> String) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let title = format!(
        ".TH {} {section} {DATE} \"h5fs {version}\"\n",
        name.to_uppercase()
    );
    (title + &roff::of_text(text, made)).into_bytes()
}

fn synopsis(command: &Command) -> String {
    let mut page = Page::default();
    let usage = |command: &Command| command.clone().render_usage().to_string();
    let usages = std::iter::once(usage(command)).chain(command.get_subcommands().map(usage));
    let lines: Vec<String> = usages.flat_map(|usage| usage_lines(&usage)).collect();
    page.lines(&lines);
    page.roff
}

/// The lines of clap's usage: `h5fs ls [OPTIONS] <SOURCE>`, with markup.
fn usage_lines(usage: &str) -> Vec<String> {
    let lines = usage
        .lines()
        .map(|line| line.trim_start_matches("Usage:").trim());
    // The commands' own lines say more.
    let lines = lines.filter(|line| !line.ends_with("<COMMAND>"));
    lines.map(marked_up).collect()
}

/// A usage with the program and its command as what one types, and the rest as what one replaces.
fn marked_up(usage: &str) -> String {
    let place = usage.find(" [").or(usage.find(" <")).unwrap_or(usage.len());
    let (typed, replaced) = usage.split_at(place);
    let replaced = replaced.replace(['<', '>'], "*");
    format!("`{typed}`{replaced}")
}

/// The options that the help shows below a heading.
fn below<'a>(command: &'a Command, heading: Option<&str>) -> Vec<&'a Arg> {
    options(command)
        .filter(|option| option.get_help_heading() == heading)
        .collect()
}

fn arguments(arguments: Vec<&Arg>) -> String {
    let mut page = Page::default();
    for argument in arguments {
        page.item(&term(argument), &explanation(argument));
    }
    page.roff
}

/// An option as one types it.
fn term(option: &Arg) -> String {
    let short = option.get_short().map(|letter| format!("`-{letter}`"));
    let long = option.get_long().map(|name| format!("`--{name}`"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let range = option.get_num_args().unwrap_or_default();
    let value = option.get_value_names().unwrap_or_default().join(" ");
    let value = match (range.takes_values(), range.min_values()) {
        (false, _) => String::new(),
        (true, 0) => format!(" [*{value}*]"),
        (true, _) => format!(" *{value}*"),
    };
    names.join(", ") + &value
}

fn explanation(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let defaults = argument.get_default_values();
    let defaults: Vec<_> = defaults
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if defaults.is_empty()
        || !argument
            .get_num_args()
            .is_some_and(|range| range.takes_values())
    {
        return help;
    }
    format!("{help} [default: {}]", defaults.join(", "))
}

/// What the commands do, and the options that each has beside those that stand elsewhere.
fn commands(command: &Command) -> String {
    let mut page = Page::default();
    let elsewhere: Vec<&Arg> = common(command)
        .into_iter()
        .chain(command.get_arguments())
        .collect();
    for subcommand in command.get_subcommands() {
        let usage = subcommand.clone().render_usage().to_string();
        for line in usage_lines(&usage) {
            page.heading("SS", &line);
        }
        page.paragraph(&about(subcommand));
        let own = options(subcommand)
            .filter(|option| !elsewhere.iter().any(|other| is_same(option, other)));
        page.insert(&arguments(own.collect()));
    }
    page.roff
}

/// What a command does, as sentences: its help begins with a line that has no full stop.
fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let (first, rest) = about.split_once("\n\n").unwrap_or((&about, ""));
    format!("{first}. {rest}")
}

/// The options of the commands that read without a mount, but for those of a URL.
fn common(command: &Command) -> Vec<&Arg> {
    let (Some(one), Some(other)) = (
        command.find_subcommand("ls"),
        command.find_subcommand("check"),
    ) else {
        return Vec::new();
    };
    let shared = options(one)
        .filter(|option| options(other).any(|other| is_same(option, other)))
        .filter(|option| option.get_help_heading().is_none());
    shared.collect()
}

/// The options that the help shows, but for itself.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && !argument.is_positional());
    shown.filter(|option| option.get_id() != "help")
}

/// Whether two commands have the same option.
fn is_same(one: &Arg, other: &Arg) -> bool {
    let help = |argument: &Arg| argument.get_help().map(ToString::to_string);
    one.get_id() == other.get_id() && help(one) == help(other)
}

/// The paths of [`GUIDE`] alone.
fn paths_of_views() -> String {
    let mut page = Page::default();
    let paths = GUIDE.iter().flat_map(|row| row.paths);
    let paths: Vec<String> = paths.map(|path| format!("`{path}`")).collect();
    page.paragraph(&paths.join(", "));
    page.roff
}

fn guide() -> String {
    let mut page = Page::default();
    for row in GUIDE {
        let paths: Vec<String> = row.paths.iter().map(|path| format!("`{path}`")).collect();
        page.item(&paths.join(", "), row.content);
    }
    page.roff
}

/// The words of `-o`.
fn words() -> String {
    let mut page = Page::default();
    for (synopsis, help) in words_with_help() {
        let term = match synopsis.split_once('=') {
            Some((word, value)) => format!("`{word}=`*{value}*"),
            None => format!("`{synopsis}`"),
        };
        page.item(&term, &help);
    }
    page.roff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    fn text(page: Vec<u8>) -> String {
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn options_stand_once() {
        let page = text(program(args::definition()));
        for option in [
            "external",
            "cache-size",
            "disk-cache",
            "endpoint",
            "jobs",
            "recursive",
        ] {
            let term = format!("\\fB\\-\\-{}\\fR", option.replace('-', "\\-"));
            let lines: Vec<&str> = page.lines().collect();
            let terms = lines
                .windows(2)
                .filter(|pair| pair[0] == ".TP" && pair[1].contains(&term));
            assert_eq!(terms.count(), 1, "{option}");
        }
        for hidden in ["records", "terminal"] {
            assert!(!page.contains(&format!("\\-\\-{hidden}")), "{hidden}");
        }
    }

    #[test]
    fn sections_stand_in_their_order() {
        let page = text(program(args::definition()));
        let sections = page.lines().filter_map(|line| line.strip_prefix(".SH "));
        let sections: Vec<&str> = sections.map(|name| name.trim_matches('"')).collect();
        let expected = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "EXAMPLES",
            "THE TREE",
            "VIEWS",
            "SELECTORS",
            "ATTRIBUTES",
            "OPTIONS",
            "COMMANDS",
            "FILES",
            "ENVIRONMENT",
            "EXIT STATUS",
            "DIAGNOSTICS",
            "SEE ALSO",
        ];
        assert_eq!(sections, expected);
    }
}
