use h5fs_fetcher::RemoteSettings;
use h5fs_tree::External;

use super::*;

fn settings(text: &str) -> Settings {
    let mut settings = Settings::default();
    parse_words(text).unwrap().apply(&mut settings).unwrap();
    settings
}

#[test]
fn the_documented_defaults_equal_the_settings() {
    let told = OPTIONS.iter().filter_map(|option| {
        let mut settings = Settings::default();
        option.apply(&mut settings, Some(option.default?)).ok()?;
        Some((option.word, settings))
    });
    let same = |word| (word, Settings::default());
    let wanted = ["external", "verify", "sandbox"].map(same);
    assert_eq!(told.collect::<Vec<_>>(), wanted);
}

#[test]
fn the_document_has_every_option() {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/options.md");
    let text = std::fs::read_to_string(document).unwrap();
    for option in all_options() {
        let takes_value = option.synopsis().starts_with(&format!("{}=", option.word));
        let equals = if takes_value { "=" } else { "" };
        let row = format!("\n| `--{}` | `{}{equals}` | ", option.flag, option.word);
        assert_eq!(text.matches(&row).count(), 1, "{row}");
    }
}

#[test]
fn every_choice_is_accepted() {
    for name in ["external", "verify", "sandbox"] {
        let choices = choices(name);
        assert!(choices.len() > 1, "{name}");
        for choice in choices {
            assert!(
                parse_words(&format!("{name}={choice}")).is_ok(),
                "{name}={choice}"
            );
        }
    }
    assert!(choices("cache_size").is_empty() && choices("no such").is_empty());
}

#[test]
fn a_line_of_fstab() {
    let line = "defaults,rw,noauto,nofail,user,x-systemd.automount,comment=a b,_netdev,uid=1000";
    let expected = Settings {
        uid: Some(1000),
        asks_to_write: true,
        ..Settings::default()
    };
    assert_eq!(settings(line), expected);
}

/// The options in mount(8), "FILESYSTEM-INDEPENDENT MOUNT OPTIONS", of util-linux 2.40.
#[test]
fn every_word_of_mount_is_accepted() {
    let line = "async,atime,noatime,auto,noauto,defaults,dev,nodev,diratime,nodiratime,dirsync,\
                noexec,exec,group,iversion,noiversion,mand,nomand,_netdev,nofail,relatime,\
                norelatime,strictatime,nostrictatime,lazytime,nolazytime,suid,nosuid,silent,\
                loud,owner,ro,sync,user,nouser,users,X-mount.mkdir=0755,\
                x-systemd.requires=/data,comment=a";
    assert_eq!(settings(line), Settings::default());
    assert!(settings("remount,ro").remount);
    assert!(settings("user,exec,noexec").no_exec);
    assert!(settings("nosymfollow").no_symlinks);
}

#[test]
fn every_own_word_is_accepted() {
    let all = "allow_other,uid=1,gid=2,umask=027,cache_size=3M,threads=4,open_files=5,\
               direct_io,external=any,verify=on,sandbox=off,force,strict,partial,noviews,noforget,run_as=7,log_file=/a\\,b,\
               fsname=data,noexec,nosymfollow,context=\"s:c0,c1\"";
    let expected = Settings {
        allow_other: true,
        uid: Some(1),
        gid: Some(2),
        umask: Some(0o027),
        cache_size: Some(3 << 20),
        threads: Some(4),
        open_files: Some(5),
        direct_io: true,
        external: External::Any,
        verify: true,
        no_sandbox: true,
        force: true,
        strict: true,
        partial: true,
        no_views: true,
        no_forget: true,
        asks_to_write: false,
        remount: false,
        run_as: Some(7),
        log_file: Some("/a,b".into()),
        fsname: Some("data".to_owned()),
        no_exec: true,
        no_symlinks: true,
        kernel: vec!["context=\"s:c0,c1\"".to_owned()],
        remote: RemoteSettings::default(),
    };
    assert_eq!(settings(all), expected);
}

#[test]
fn lines_of_other_fuse_filesystems() {
    let line = "rw,nosuid,nodev,default_permissions,kernel_cache,big_writes,max_read=131072";
    assert_eq!(settings(line), Settings::default());
    assert!(settings("rw").asks_to_write);
    let named = settings("uid=root,gid=root");
    assert_eq!((named.uid, named.gid), (Some(0), Some(0)));
}

#[test]
fn the_last_word_wins() {
    assert_eq!(settings("uid=1,uid=2").uid, Some(2));
}

#[test]
fn invalid_words_are_named() {
    for (text, named) in [
        ("ro,bogus", "bogus"),
        ("context", "context"),
        ("uid=", "uid="),
        ("uid=-1", "uid=-1"),
        ("gid=no such group", "gid=no such group"),
        ("max_read", "max_read"),
        ("uid=4294967295", "uid=4294967295"),
        ("umask=8", "umask=8"),
        ("umask=1000", "umask=1000"),
        ("threads=0", "threads=0"),
        ("direct_io=yes", "direct_io=yes"),
        ("cache_size=1T", "cache_size=1T"),
        ("external=all", "external=all"),
        ("verify=1", "verify=1"),
        ("Ro", "Ro"),
    ] {
        let error = parse_words(text).unwrap_err();
        assert!(error.contains(&format!("`{named}`")), "{text}: {error}");
    }
}
