//! The manual pages, which are made from the definition of the command line.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::cli::options;

/// The day on which the texts of the pages were last looked at.
const DATE: &str = "2026-11-23";

/// The page h5fs(1) of `command`: one for all, since the subcommands have too few options for pages
/// of their own.
pub(in crate::cli) fn program(mut command: Command) -> io::Result<Vec<u8>> {
    command.build();
    let page = Man::new(command.clone());
    let mut text = title("h5fs", 1).into_bytes();
    page.render_name_section(&mut text)?;
    text.extend(synopsis(&mut command).into_bytes());
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    for subcommand in command.get_subcommands() {
        text.extend(subcommand_section(subcommand)?.into_bytes());
    }
    let mut notes = Vec::new();
    page.render_extra_section(&mut notes)?;
    text.extend(renamed(&notes, "EXTRA", "NOTES").into_bytes());
    text.extend(
        b".SH \"SEE ALSO\"\nmount.h5fs(8), mount(8), umount(8), fusermount3(1), fstab(5)\n",
    );
    Ok(text)
}

/// The first line of a page.
fn title(name: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH {name} {section} {DATE} \"h5fs {version}\"\n")
}

fn synopsis(command: &mut Command) -> String {
    let mut usages = vec![command.render_usage().to_string()];
    usages.extend(
        command
            .get_subcommands_mut()
            .map(|subcommand| subcommand.render_usage().to_string()),
    );
    let lines = usages
        .iter()
        .flat_map(|usage| usage.lines())
        .map(|line| line.trim_start_matches("Usage:").trim())
        // The subcommands' own lines say more.
        .filter(|line| !line.ends_with("<COMMAND>"));
    let lines: Vec<_> = lines.collect();
    format!(".SH SYNOPSIS\n{}\n", lines.join("\n.br\n"))
}

fn subcommand_section(subcommand: &Command) -> io::Result<String> {
    let mut options = Vec::new();
    Man::new(subcommand.clone()).render_options_section(&mut options)?;
    let about = subcommand
        .get_long_about()
        .or(subcommand.get_about())
        .map(ToString::to_string)
        .unwrap_or_default();
    let about = about.trim_end_matches('.');
    let heading = format!("\"h5fs {}\"\n{about}.", subcommand.get_name());
    Ok(renamed(&options, "OPTIONS", &heading))
}

/// Gives a section of a manual page another heading.
fn renamed(section: &[u8], from: &str, to: &str) -> String {
    let section = String::from_utf8_lossy(section);
    section.replacen(&format!(".SH {from}\n"), &format!(".SH {to}\n"), 1)
}

/// The page mount.h5fs(8): mount(8)'s way to h5fs.
pub(in crate::cli) fn mount_helper() -> io::Result<Vec<u8>> {
    let mut page = Roff::new();
    let text = |text: &str| [roman(text)];
    page.control("SH", ["NAME"]);
    page.text(text(
        "mount.h5fs - mount an HDF5 or ASDF file, or a directory of such files",
    ));
    page.control("SH", ["SYNOPSIS"]);
    page.text([
        bold("mount -t h5fs"),
        roman(" [-o "),
        italic("options"),
        roman("] "),
        italic("SOURCE MOUNTPOINT"),
    ]);
    page.control("SH", ["DESCRIPTION"]);
    page.text(text(
        "The helper of mount(8) for the type h5fs: h5fs(1) by another name. It takes the words of \
         -o and no subcommands. The mount is read-only, without devices and set-user-id programs, \
         whatever the words say. It needs no other program if root mounts, and fusermount3(1) \
         otherwise.",
    ));
    page.control("SH", ["OPTIONS"]);
    for (synopsis, help) in options::words_with_help() {
        page.control("TP", []);
        page.text([bold(synopsis)]);
        page.text([roman(help)]);
    }
    page.text(text(
        "Words that lines of fstab(5) carry for mount(8), systemd.mount(5) and other FUSE \
         filesystems (ro, noauto, user, nofail, _netdev, x-*, default_permissions, and so on) are \
         accepted and change nothing. context=, fscontext=, defcontext=, rootcontext= and fsname= \
         go to the kernel. Any other word is an error.",
    ));
    page.control("SH", ["EXAMPLES"]);
    page.text(text(
        "Lines of /etc/fstab, for a file and for a directory that is mounted when somebody looks:",
    ));
    page.control("PP", []);
    page.control("nf", []);
    page.text(text(
        "/data/run.h5  /mnt/run  h5fs  noauto,user,cache_size=256M  0  0",
    ));
    page.text(text(
        "/data/2026  /srv/runs  h5fs  noauto,x-systemd.automount,allow_other  0  0",
    ));
    page.control("fi", []);
    page.control("SH", ["SEE ALSO"]);
    page.text(text(
        "h5fs(1), mount(8), umount(8), fusermount3(1), fstab(5)",
    ));
    Ok((title("mount.h5fs", 8) + &page.render()).into_bytes())
}
