//! Explains how to install fusermount3, without which only root can mount.

/// Commands that install fusermount3, keyed by values of `ID` and `ID_LIKE` in os-release(5).
const FUSE_PACKAGE: [(&[&str], &str); 5] = [
    (&["debian", "ubuntu"], "apt install fuse3"),
    (&["fedora", "rhel", "centos"], "dnf install fuse3"),
    (&["suse", "opensuse"], "zypper install fuse3"),
    (&["arch"], "pacman -S fuse3"),
    (&["alpine"], "apk add fuse3"),
];

/// Returns a message that explains why a user cannot mount without fusermount3. The message names
/// the install command for the system that this os-release(5) describes.
pub(in crate::cli) fn missing_message(os_release: &str, is_conda: bool) -> String {
    let names: Vec<&str> = os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches(['"', '\'']).split_whitespace())
        .collect();
    let known = FUSE_PACKAGE
        .iter()
        .find(|(systems, _)| names.iter().any(|name| systems.contains(name)));
    let remedy = match known {
        Some((_, command)) => format!("`{command}` as root installs it"),
        None => {
            let commands = FUSE_PACKAGE.map(|(_, command)| format!("`{command}`"));
            format!("one of these installs it as root: {}", commands.join(", "))
        }
    };
    let conda = if is_conda {
        " (conda cannot: the program must run as root)"
    } else {
        ""
    };
    format!(
        "fusermount3 is not installed; a user who is not root needs it to mount; {remedy}{conda}; \
         `h5fs ls` and `h5fs cat` work without"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines are taken from the os-release files of these systems.
    #[test]
    fn a_missing_fusermount_is_explained_for_each_system() {
        let told = |os_release: &str| missing_message(os_release, false);
        for (os_release, command) in [
            (
                "NAME=\"Debian GNU/Linux\"\nID=debian\n",
                "`apt install fuse3`",
            ),
            (
                "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
                "`apt install fuse3`",
            ),
            ("NAME=\"Fedora Linux\"\nID=fedora\n", "`dnf install fuse3`"),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
                "`dnf install fuse3`",
            ),
            (
                "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n",
                "`zypper install fuse3`",
            ),
            ("NAME=\"Arch Linux\"\nID=arch\n", "`pacman -S fuse3`"),
            ("NAME=\"Alpine Linux\"\nID=alpine\n", "`apk add fuse3`"),
        ] {
            let text = told(os_release);
            assert!(text.contains(command), "{os_release}: {text}");
            assert_eq!(text.matches("fuse3`").count(), 1, "{text}");
            assert!(!text.contains("conda"), "{text}");
        }
        for unknown in ["", "ID=void\n"] {
            assert_eq!(told(unknown).matches("fuse3`").count(), 5, "{unknown}");
        }
        let conda = missing_message("ID=debian\n", true);
        assert!(
            conda.contains("apt install fuse3") && conda.contains("conda cannot"),
            "{conda}"
        );
    }
}
