//! The manual pages, built from texts, from the definition of the command line, and from the tables
//! of options and views.

mod roff;

use clap::{Arg, Command};
use h5fs_tree::GUIDE;

use crate::cli::options::{REMOTE_HEADING, words_with_help};
use roff::RoffPage;

/// Heading of the options that print a text and exit.
pub(in crate::cli) const PRINTING_HEADING: &str = "Printing";

/// Date of the last revision of the manual texts.
const REVISION_DATE: &str = "2026-11-26";

/// Returns the page h5fs(1), which describes all subcommands of `command` together because they
/// share their options.
pub(in crate::cli) fn program_page(mut command: Command) -> Vec<u8> {
    command.build();
    let made = |name: &str| match name {
        "synopsis" => synopsis(&command),
        "views" => paths_of_views(),
        "options" => arguments(options_below(&command, None)),
        "remote" => arguments(options_below(&command, Some(REMOTE_HEADING))),
        "printing" => arguments(options_below(&command, Some(PRINTING_HEADING))),
        "commands" => subcommand_sections(&command),
        "common" => arguments(common_options(&command)),
        _ => String::new(),
    };
    page("h5fs", 1, include_str!("manual/h5fs.md"), made)
}

/// Returns the page mount.h5fs(8) about the helper of mount(8).
pub(in crate::cli) fn mount_helper_page() -> Vec<u8> {
    let made = |name: &str| match name {
        "words" => option_words(),
        _ => String::new(),
    };
    page("mount.h5fs", 8, include_str!("manual/mount.h5fs.md"), made)
}

/// Returns the page h5fs-views(7) about the files in `.h5fs`.
pub(in crate::cli) fn views_page() -> Vec<u8> {
    let made = |name: &str| match name {
        "views" => views_guide(),
        _ => String::new(),
    };
    page("h5fs-views", 7, include_str!("manual/h5fs-views.md"), made)
}

fn page(name: &str, section: u8, text: &str, made: impl Fn(&str) -> String) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let title = format!(
        ".TH {} {section} {REVISION_DATE} \"h5fs {version}\"\n",
        name.to_uppercase()
    );
    (title + &roff::from_text(text, made)).into_bytes()
}

fn synopsis(command: &Command) -> String {
    let mut page = RoffPage::default();
    let usage = |command: &Command| command.clone().render_usage().to_string();
    let usages = std::iter::once(usage(command)).chain(command.get_subcommands().map(usage));
    let lines: Vec<String> = usages.flat_map(|usage| usage_lines(&usage)).collect();
    page.add_lines(&lines);
    page.roff
}

/// Converts the lines of clap's usage to manual markup, for example `h5fs ls [OPTIONS] <SOURCE>`.
fn usage_lines(usage: &str) -> Vec<String> {
    let lines = usage
        .lines()
        .map(|line| line.trim_start_matches("Usage:").trim());
    // The usage lines of the subcommands are more specific.
    let lines = lines.filter(|line| !line.ends_with("<COMMAND>"));
    lines.map(mark_up_usage).collect()
}

/// Marks the program and the subcommand as literal text, and the rest as placeholders.
fn mark_up_usage(usage: &str) -> String {
    let place = usage.find(" [").or(usage.find(" <")).unwrap_or(usage.len());
    let (typed, replaced) = usage.split_at(place);
    let replaced = replaced.replace(['<', '>'], "*");
    format!("`{typed}`{replaced}")
}

/// Returns the options that the help shows below a heading.
fn options_below<'a>(command: &'a Command, heading: Option<&str>) -> Vec<&'a Arg> {
    options(command)
        .filter(|option| option.get_help_heading() == heading)
        .collect()
}

fn arguments(arguments: Vec<&Arg>) -> String {
    let mut page = RoffPage::default();
    for argument in arguments {
        page.add_item(&option_term(argument), &explanation(argument));
    }
    page.roff
}

/// Returns an option with markup, as the user types it.
fn option_term(option: &Arg) -> String {
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

/// Returns the descriptions of the subcommands, each with the options that no other section lists.
fn subcommand_sections(command: &Command) -> String {
    let mut page = RoffPage::default();
    let elsewhere: Vec<&Arg> = common_options(command)
        .into_iter()
        .chain(command.get_arguments())
        .collect();
    for subcommand in command.get_subcommands() {
        let usage = subcommand.clone().render_usage().to_string();
        for line in usage_lines(&usage) {
            page.heading("SS", &line);
        }
        page.paragraph(&description(subcommand));
        let own = options(subcommand)
            .filter(|option| !elsewhere.iter().any(|other| is_same_option(option, other)));
        page.insert(&arguments(own.collect()));
    }
    page.roff
}

/// Returns the description of a command as sentences. Adds a full stop to the first line of the
/// help.
fn description(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let (first, rest) = about.split_once("\n\n").unwrap_or((&about, ""));
    format!("{first}. {rest}")
}

/// Returns the options that all commands without a mount share, except the options for URLs.
fn common_options(command: &Command) -> Vec<&Arg> {
    let (Some(one), Some(other)) = (
        command.find_subcommand("ls"),
        command.find_subcommand("check"),
    ) else {
        return Vec::new();
    };
    let shared = options(one)
        .filter(|option| options(other).any(|other| is_same_option(option, other)))
        .filter(|option| option.get_help_heading().is_none());
    shared.collect()
}

/// Returns the visible options, except `--help`.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && !argument.is_positional());
    shown.filter(|option| option.get_id() != "help")
}

/// Returns whether `one` and `other` are the same option.
fn is_same_option(one: &Arg, other: &Arg) -> bool {
    let help = |argument: &Arg| argument.get_help().map(ToString::to_string);
    one.get_id() == other.get_id() && help(one) == help(other)
}

/// Returns roff that lists the paths below `.h5fs` in [`GUIDE`], without their descriptions.
fn paths_of_views() -> String {
    let mut page = RoffPage::default();
    let paths = GUIDE.iter().flat_map(|row| row.paths);
    let paths: Vec<String> = paths.map(|path| format!("`{path}`")).collect();
    page.paragraph(&paths.join(", "));
    page.roff
}

fn views_guide() -> String {
    let mut page = RoffPage::default();
    for row in GUIDE {
        let paths: Vec<String> = row.paths.iter().map(|path| format!("`{path}`")).collect();
        page.add_item(&paths.join(", "), row.content);
    }
    page.roff
}

/// Returns the words of `-o` with their descriptions.
fn option_words() -> String {
    let mut page = RoffPage::default();
    for (synopsis, help) in words_with_help() {
        let term = match synopsis.split_once('=') {
            Some((word, value)) => format!("`{word}=`*{value}*"),
            None => format!("`{synopsis}`"),
        };
        page.add_item(&term, &help);
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
    fn each_option_is_listed_once() {
        let page = text(program_page(args::definition()));
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
    fn sections_are_in_order() {
        let page = text(program_page(args::definition()));
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
