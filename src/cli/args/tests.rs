use super::*;

fn task(program: Program, line: &str) -> Result<Task> {
    let arguments: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
    parse(program, &arguments)
}

fn mount(program: Program, line: &str) -> MountCommand {
    match task(program, line) {
        Ok(Task::Mount(mount)) => mount,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Arguments::command().debug_assert();
    HelperArguments::command().debug_assert();
}

#[test]
fn the_first_word_selects_a_subcommand() {
    let path = |text: &str| Location::Path(text.into());
    let listed = task(Program::Command, "ls -lR data.h5 group").unwrap();
    let expected = InspectCommand::Ls {
        format: ListFormat {
            long: true,
            recursive: true,
            ..ListFormat::default()
        },
        operands: Operands {
            source: path("data.h5"),
            more: vec!["group".into()],
            one: false,
            how: ReadingArguments {
                jobs: None,
                sandbox: true,
                force: false,
                strict: false,
                partial: false,
                quiet: false,
                remote: RemoteFlags::default(),
            },
        },
    };
    assert_eq!(listed, Task::Inspect(expected));
    let checked = task(
        Program::Command,
        "check a.h5 -j3 --data --views --force -q --sandbox=off b",
    )
    .unwrap();
    let expected = InspectCommand::Check {
        data: true,
        views: true,
        json: false,
        records: false,
        joined: false,
        sources: vec![path("a.h5"), path("b")],
        how: ReadingArguments {
            jobs: Some(3),
            sandbox: false,
            force: true,
            strict: false,
            partial: false,
            quiet: true,
            remote: RemoteFlags::default(),
        },
    };
    assert_eq!(checked, Task::Inspect(expected));
    assert_eq!(mount(Program::Command, "./ls mnt").source, path("./ls"));
    assert_eq!(
        mount(Program::Command, "data.h5 ls").mountpoint,
        PathBuf::from("ls")
    );
}

#[test]
fn options_may_be_anywhere_and_flags_take_precedence() {
    let mounted = mount(
        Program::Command,
        "data.h5 mnt -o rw,uid=7,dev,suid --uid 8 -f -o umask=077 --cache-size 1G",
    );
    assert!(mounted.foreground);
    assert_eq!(mounted.settings.uid, Some(8));
    assert_eq!(mounted.settings.umask, Some(0o077));
    assert_eq!(mounted.settings.cache_size, Some(1 << 30));
}

#[test]
fn a_view_is_a_mount_in_the_foreground() {
    let line = |rest: &str| task(Program::Command, &format!("view {rest}"));
    let Ok(Task::View(view)) = line("a.h5 --cache-size 1G") else {
        panic!("no view");
    };
    assert!(view.foreground && view.mountpoint.as_os_str().is_empty());
    assert_eq!(view.settings.cache_size, Some(1 << 30));
    let Ok(Task::Mount(mount)) = line("--at /tmp/x ls") else {
        panic!("no mount");
    };
    assert_eq!(mount.mountpoint, PathBuf::from("/tmp/x"));
    assert_eq!(mount.source.name(), PathBuf::from("ls"));
    assert!(line("a.h5 mnt").is_err() && line("").is_err());
    assert!(line("a.h5 -o noviews").is_err());
}

#[test]
fn the_mount_helper_knows_no_subcommands() {
    let line = "/data/a.h5 /mnt -o rw,allow_other -t h5fs -nsv -N /proc/1/ns/mnt";
    let mounted = mount(Program::MountHelper, line);
    assert!(mounted.settings.allow_other);
    assert!(!mounted.foreground);
    let named = mount(Program::MountHelper, "ls /mnt -r");
    assert_eq!(named.source.name(), PathBuf::from("ls"));
    assert_eq!(
        task(Program::MountHelper, "a.h5 /mnt -f").unwrap(),
        Task::CheckOnly
    );
    assert!(task(Program::MountHelper, "a.h5 /mnt -f -o bogus").is_err());
}

#[test]
fn an_error_is_one_line() {
    for line in [
        "data.h5",
        "data.h5 mnt --nonsense",
        "data.h5 mnt -o ro,nonsense",
        "ls --recursiv data.h5",
        "ftp://host/key.h5 mnt",
        "mount data.h5 mnt",
        "cat",
    ] {
        match task(Program::Command, line) {
            Err(Error::Usage(text)) => assert!(!text.contains('\n'), "{text}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn a_misspelt_option_is_reported_with_a_suggestion() {
    for (line, wanted) in [
        ("ls --recursiv a.h5", "'--recursive'"),
        ("a.h5 mnt --foregroud", "'--foreground'"),
        ("check --dat a.h5", "'--data'"),
    ] {
        let told = task(Program::Command, line).unwrap_err().to_string();
        assert!(told.contains(&format!("did you mean {wanted}?")), "{told}");
    }
}

#[test]
fn one_definition_prints_everything() {
    for line in [
        "--help",
        "--version",
        "--man",
        "--man mount.h5fs",
        "--completions bash",
        "ls --help",
        "help",
        "help check",
        "version",
    ] {
        assert!(
            matches!(task(Program::Command, line), Ok(Task::Print(_))),
            "{line}"
        );
    }
}
