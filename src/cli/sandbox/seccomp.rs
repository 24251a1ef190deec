//! seccomp: restricts which system calls are permitted; see seccomp(2). Only this file uses the
//! crate seccompiler.

use std::collections::BTreeMap;
use std::os::fd::RawFd;

use nix::libc;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    apply_filter,
};

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// The files that a process can open once it is sandboxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    /// The files that Landlock permits.
    Landlocked,
    /// The files that Landlock permits. The directories that Landlock permits can also be listed.
    Listed,
    /// No file. The process can still receive open file descriptors.
    None,
    /// The files that Landlock permits, for reading and writing, and the network.
    Network,
}

/// Restricts this thread, and the threads that it starts, to the system calls that serving needs.
/// With a listening socket `clients`, the calls for its clients are permitted as well. All other
/// calls fail with `EPERM`.
///
/// # Errors
/// The text names the step that the kernel does not support.
pub(super) fn restrict(files: FileAccess, clients: Option<RawFd>) -> Result<(), String> {
    filter_programs(files, clients)
        .and_then(|programs| {
            programs
                .iter()
                .try_for_each(|program| apply_filter(program))
        })
        .map_err(|error| format!("no seccomp filter: {error}"))
}

fn filter_programs(
    files: FileAccess,
    clients: Option<RawFd>,
) -> seccompiler::Result<[BpfProgram; 2]> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = |rules, otherwise, then| -> seccompiler::Result<BpfProgram> {
        Ok(SeccompFilter::new(rules, otherwise, then, machine)?.try_into()?)
    };
    let refused = |errno: i32| SeccompAction::Errno(errno.unsigned_abs());
    // A refusal by one filter overrides the permission by the other.
    Ok([
        filter(
            unsupported_calls(),
            SeccompAction::Allow,
            refused(libc::ENOSYS),
        )?,
        filter(
            permitted_calls(files, clients)?,
            refused(libc::EPERM),
            SeccompAction::Allow,
        )?,
    ])
}

/// Returns the system calls that fail with `ENOSYS`. The C library then uses an older system call
/// instead.
fn unsupported_calls() -> SyscallRules {
    // The flags of `clone3` are in memory, which a filter cannot read. The flags of `clone` are in
    // a register.
    SyscallRules::from([(libc::SYS_clone3, vec![])])
}

/// Returns all permitted system calls. Some are permitted only with certain arguments.
fn permitted_calls(files: FileAccess, clients: Option<RawFd>) -> seccompiler::Result<SyscallRules> {
    let (always, sometimes_more) = match files {
        FileAccess::Landlocked => ([OPEN_CALLS, &[]], open_rules()),
        FileAccess::Listed => ([OPEN_CALLS, LIST_CALLS], open_rules()),
        FileAccess::None => ([RECEIVE_CALLS, &[]], vec![]),
        FileAccess::Network => ([NETWORK_CALLS, LIST_CALLS], network_rules()),
    };
    let mut rules = SyscallRules::new();
    let of_clients = clients.map(accept_rules).unwrap_or_default();
    let all = conditional_calls().into_iter().chain(sometimes_more);
    for (call, conditions) in all.chain(of_clients) {
        let rule = conditions.into_iter().collect::<Result<Vec<_>, _>>()?;
        rules.entry(call).or_default().push(SeccompRule::new(rule)?);
    }
    let of_clients = if clients.is_some() { CLIENT_CALLS } else { &[] };
    let always = UNCONDITIONAL_CALLS
        .iter()
        .chain(always.into_iter().flatten());
    let always = always.chain(of_clients);
    rules.extend(always.map(|call| (*call, vec![])));
    Ok(rules)
}

/// A system call, and the conditions that its arguments must meet.
type ConditionalCall = (i64, Vec<Condition>);

type Condition = Result<SeccompCondition, seccompiler::BackendError>;

/// Returns the condition that the 32-bit argument with this index equals `value`.
fn equals(index: u8, value: i32) -> Condition {
    SeccompCondition::new(index, Dword, Eq, u64::from(value.unsigned_abs()))
}

/// Returns the condition that, among the bits `mask` of an argument, exactly the bits `set` are
/// set.
fn bits_equal(index: u8, mask: u64, set: i32) -> Condition {
    SeccompCondition::new(index, Qword, MaskedEq(mask), flag_bits(set))
}

fn bits_clear(index: u8, mask: i32) -> Condition {
    bits_equal(index, flag_bits(mask), 0)
}

fn flag_bits(flags: i32) -> u64 {
    u64::from(flags.unsigned_abs())
}

/// Returns the rules for opening files, which permit reading only. The flags of `openat2` are in
/// memory, which a filter cannot read, so only Landlock restricts that call.
fn open_rules() -> Vec<ConditionalCall> {
    // `O_ACCMODE` is not used as the mask, because it includes `O_PATH` in musl.
    let writing = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    let read_only = |index| bits_clear(index, writing);
    vec![
        (libc::SYS_openat, vec![read_only(2)]),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, vec![read_only(1)]),
    ]
}

/// Returns the rules for sockets of the network, of the resolver and of the log.
fn network_rules() -> Vec<ConditionalCall> {
    let families = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ];
    let sockets = families.map(|family| (libc::SYS_socket, vec![equals(0, family)]));
    let requests = [libc::FIONREAD, libc::FIONBIO];
    // The type of an ioctl request differs between C libraries.
    let control = requests.map(|request| (libc::SYS_ioctl, vec![equals(1, request as i32)]));
    sockets.into_iter().chain(control).collect()
}

/// Returns the rules for accepting clients of one listening socket and setting their socket
/// options.
fn accept_rules(listener: RawFd) -> Vec<ConditionalCall> {
    let no_delay = vec![equals(1, libc::IPPROTO_TCP), equals(2, libc::TCP_NODELAY)];
    // Lets a client see a reset if the response is incomplete.
    let linger = vec![equals(1, libc::SOL_SOCKET), equals(2, libc::SO_LINGER)];
    vec![
        (libc::SYS_accept4, vec![equals(0, listener)]),
        (libc::SYS_setsockopt, no_delay),
        (libc::SYS_setsockopt, linger),
    ]
}

fn conditional_calls() -> Vec<ConditionalCall> {
    // Resource limits count neither shared memory nor memory that grows like a stack.
    let uncounted = libc::MAP_SHARED | libc::MAP_GROWSDOWN | libc::MAP_HUGETLB;
    let anonymous = bits_equal(
        3,
        flag_bits(uncounted | libc::MAP_ANONYMOUS),
        libc::MAP_ANONYMOUS,
    );
    vec![
        // Memory must be counted by the limits and must not be executable.
        (
            libc::SYS_mmap,
            vec![bits_clear(2, libc::PROT_EXEC), anonymous],
        ),
        (libc::SYS_mprotect, vec![bits_clear(2, libc::PROT_EXEC)]),
        // New threads are permitted, but no new processes.
        (
            libc::SYS_clone,
            vec![bits_equal(0, !flag_bits(THREAD_FLAGS), libc::CLONE_THREAD)],
        ),
        // Sets the name of a thread.
        (libc::SYS_prctl, vec![equals(0, libc::PR_SET_NAME)]),
        // `abort` sends a signal to the own process.
        (libc::SYS_tgkill, vec![equals(0, own_process_id())]),
        // Log lines go through a socket that is already connected, so no other destination can be
        // named.
        (
            libc::SYS_sendto,
            vec![SeccompCondition::new(4, Qword, Eq, 0)],
        ),
        // A reopened log file arrives on the supervision socket, which is standard input.
        (libc::SYS_recvmsg, vec![equals(0, libc::STDIN_FILENO)]),
        // The limit of open files can be read, but not set.
        (
            libc::SYS_prlimit64,
            vec![equals(0, 0), bits_equal(2, u64::MAX, 0)],
        ),
        // Descriptors can be duplicated. Leases and locks are forbidden, because other processes
        // would wait for them.
        (libc::SYS_fcntl, vec![equals(1, libc::F_DUPFD_CLOEXEC)]),
        // musl sets this flag again after each `open`.
        (
            libc::SYS_fcntl,
            vec![equals(1, libc::F_SETFD), equals(2, libc::FD_CLOEXEC)],
        ),
        // A shared lock fails if a writer has locked the source.
        (
            libc::SYS_flock,
            vec![equals(1, libc::LOCK_SH | libc::LOCK_NB)],
        ),
        (libc::SYS_flock, vec![equals(1, libc::LOCK_UN)]),
    ]
}

/// The flags that a C library passes to `clone` to start a thread, except `CLONE_THREAD`.
const THREAD_FLAGS: i32 = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID
    | libc::CLONE_DETACHED;

fn own_process_id() -> i32 {
    nix::unistd::getpid().as_raw()
}

/// The system calls that open files, and those that query a path instead of a descriptor: access
/// control lists, symbolic links, and watches for changes. Landlock does not restrict the calls
/// that query a path, so they can be used with any path.
const OPEN_CALLS: &[i64] = &[
    libc::SYS_openat2,
    libc::SYS_getxattr,
    libc::SYS_readlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    // for `realpath`
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_inotify_add_watch,
];

/// The system call that lists directories.
const LIST_CALLS: &[i64] = &[libc::SYS_getdents64];

/// The system calls that receive an open file, and that watch this file for changes.
const RECEIVE_CALLS: &[i64] = &[libc::SYS_recvmsg, libc::SYS_inotify_add_watch];

/// The system calls that communicate with servers, and those that write the disk cache and the
/// stage.
const NETWORK_CALLS: &[i64] = &[
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    libc::SYS_fcntl,
    libc::SYS_uname,
    libc::SYS_pwrite64,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_flock,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
];

/// The calls with which one thread waits for clients and receives their requests. Responses use the
/// write calls of [`UNCONDITIONAL_CALLS`].
const CLIENT_CALLS: &[i64] = &[
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_recvfrom,
    libc::SYS_shutdown,
];

/// System calls that are permitted with any arguments.
const UNCONDITIONAL_CALLS: &[i64] = &[
    // serving requests
    libc::SYS_read,
    libc::SYS_writev,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_readv,
    libc::SYS_fadvise64,
    // open files
    libc::SYS_close,
    libc::SYS_fstat,
    // access control lists
    libc::SYS_fgetxattr,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    // end of a watch for changes of other files, and the filesystem type of a file
    libc::SYS_inotify_rm_watch,
    libc::SYS_fstatfs,
    // memory
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    // threads; the other filter answers `clone3` with `ENOSYS`
    libc::SYS_futex,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // signals
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // time and random numbers
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    // whether the mount exists, checked when a refused mount is dropped
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    // equivalents that some C libraries call instead
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter program on one system call, as seccomp(2) describes. Returns whether the call
    /// is permitted.
    fn is_allowed_by(program: &BpfProgram, call: i64, arguments: [u64; 6]) -> bool {
        let mut data = Vec::new();
        data.extend((call as u32).to_ne_bytes());
        let machine = match std::env::consts::ARCH {
            "x86_64" => 0xc000_003e_u32,
            "aarch64" => 0xc000_00b7,
            _ => 0xc000_00f3,
        };
        data.extend(machine.to_ne_bytes());
        data.extend([0; 8]);
        data.extend(arguments.iter().flat_map(|argument| argument.to_ne_bytes()));
        let (mut accumulator, mut at) = (0_u32, 0);
        loop {
            let step = &program[at];
            at += 1;
            let is_true = match step.code {
                0x06 => return step.k == libc::SECCOMP_RET_ALLOW,
                0x20 => {
                    let word = &data[step.k as usize..][..4];
                    accumulator = u32::from_ne_bytes(word.try_into().unwrap());
                    continue;
                }
                0x54 => {
                    accumulator &= step.k;
                    continue;
                }
                0x05 => {
                    at += step.k as usize;
                    continue;
                }
                0x15 => accumulator == step.k,
                0x25 => accumulator > step.k,
                0x35 => accumulator >= step.k,
                other => panic!("unknown instruction {other:#x}"),
            };
            at += usize::from(if is_true { step.jt } else { step.jf });
        }
    }

    fn is_permitted(files: FileAccess, call: i64, arguments: &[i64]) -> bool {
        let mut all = [0; 6];
        for (argument, value) in all.iter_mut().zip(arguments) {
            *argument = *value as u64;
        }
        let programs = filter_programs(files, None).unwrap();
        programs
            .iter()
            .all(|program| is_allowed_by(program, call, all))
    }

    #[test]
    fn clients_are_accepted_only_on_the_listening_socket() {
        let may_call = |clients, call, arguments: &[u64]| {
            let mut all = [0; 6];
            all[..arguments.len()].copy_from_slice(arguments);
            let programs = filter_programs(FileAccess::Landlocked, clients).unwrap();
            programs
                .iter()
                .all(|program| is_allowed_by(program, call, all))
        };
        assert!(may_call(Some(7), libc::SYS_accept4, &[7]));
        assert!(!may_call(Some(7), libc::SYS_accept4, &[8]));
        assert!(!may_call(None, libc::SYS_accept4, &[7]));
        let option = |level: i32, name: i32| {
            let arguments = [9, level as u64, name as u64];
            may_call(Some(7), libc::SYS_setsockopt, &arguments)
        };
        assert!(option(libc::IPPROTO_TCP, libc::TCP_NODELAY));
        assert!(option(libc::SOL_SOCKET, libc::SO_LINGER));
        assert!(!option(libc::SOL_SOCKET, libc::SO_BROADCAST));
        for call in [
            libc::SYS_epoll_pwait,
            libc::SYS_recvfrom,
            libc::SYS_shutdown,
        ] {
            assert!(
                may_call(Some(7), call, &[9]) && !may_call(None, call, &[9]),
                "{call}"
            );
        }
        for call in [
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_connect,
            libc::SYS_socket,
        ] {
            assert!(!may_call(Some(7), call, &[7]), "{call}");
        }
    }

    fn flags(all: &[i32]) -> i64 {
        all.iter().fold(0, |all, flag| all | i64::from(*flag))
    }

    #[test]
    fn memory_is_private_and_not_executable() {
        use libc::{MAP_ANONYMOUS, MAP_GROWSDOWN, MAP_HUGETLB, MAP_PRIVATE, MAP_SHARED};
        use libc::{PROT_EXEC, PROT_READ, PROT_WRITE};
        let written = flags(&[PROT_READ, PROT_WRITE]);
        let code = flags(&[PROT_READ, PROT_EXEC]);
        let plain = [MAP_PRIVATE, MAP_ANONYMOUS];
        let map = |protection, kind: &[i32]| {
            let arguments = [0, 4096, protection, flags(kind), -1, 0];
            is_permitted(FileAccess::Landlocked, libc::SYS_mmap, &arguments)
        };
        assert!(map(written, &plain));
        assert!(map(written, &[MAP_PRIVATE, MAP_ANONYMOUS, libc::MAP_STACK]));
        assert!(!map(code, &plain));
        assert!(!map(written, &[MAP_SHARED, MAP_ANONYMOUS]));
        assert!(!map(written, &[MAP_PRIVATE]));
        assert!(!map(written, &[MAP_PRIVATE, MAP_ANONYMOUS, MAP_GROWSDOWN]));
        assert!(!map(written, &[MAP_PRIVATE, MAP_ANONYMOUS, MAP_HUGETLB]));
        let protect = |to| {
            is_permitted(
                FileAccess::Landlocked,
                libc::SYS_mprotect,
                &[4096, 4096, to],
            )
        };
        assert!(protect(written) && !protect(code));
    }

    #[test]
    fn only_threads_can_be_started() {
        let clone = |flags| is_permitted(FileAccess::Landlocked, libc::SYS_clone, &[flags]);
        // The flags that glibc and musl pass to `clone`.
        assert!(clone(0x003d_0f00) && clone(0x007d_0f00));
        let child = i64::from(libc::SIGCHLD);
        assert!(!clone(child) && !clone(0x003d_0f00 | child));
        for more in [libc::CLONE_NEWUSER, libc::CLONE_PTRACE, libc::CLONE_PIDFD] {
            assert!(!clone(0x003d_0f00 | i64::from(more)), "{more:#x}");
        }
        assert!(!is_permitted(FileAccess::Landlocked, libc::SYS_clone3, &[]));
        let own = i64::from(own_process_id());
        let signal =
            |process| is_permitted(FileAccess::Landlocked, libc::SYS_tgkill, &[process, 1, 6]);
        assert!(signal(own) && !signal(own + 1) && !signal(0));
    }

    #[test]
    fn files_are_opened_only_for_reading() {
        let open =
            |files, how: &[i32]| is_permitted(files, libc::SYS_openat, &[-100, 1, flags(how)]);
        let read = [libc::O_RDONLY, libc::O_CLOEXEC, libc::O_NONBLOCK];
        assert!(open(FileAccess::Landlocked, &read) && !open(FileAccess::None, &read));
        for how in [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC] {
            assert!(!open(FileAccess::Landlocked, &[how]), "{how:#x}");
        }
        assert!(!open(
            FileAccess::Landlocked,
            &[libc::O_TMPFILE, libc::O_RDWR]
        ));
        for (files, opens) in [(FileAccess::Landlocked, true), (FileAccess::None, false)] {
            assert_eq!(is_permitted(files, libc::SYS_openat2, &[]), opens);
            assert_eq!(is_permitted(files, libc::SYS_recvmsg, &[3]), !opens);
            assert!(is_permitted(files, libc::SYS_recvmsg, &[0]));
        }
    }

    /// Landlock does not restrict these calls.
    #[test]
    fn paths_are_queried_only_if_files_can_be_opened() {
        let by_path = [
            libc::SYS_getxattr,
            libc::SYS_readlinkat,
            libc::SYS_faccessat2,
        ];
        let watch = libc::SYS_inotify_add_watch;
        for call in by_path.into_iter().chain([watch]) {
            assert!(
                is_permitted(FileAccess::Landlocked, call, &[])
                    && is_permitted(FileAccess::Listed, call, &[])
            );
            assert!(!is_permitted(FileAccess::Network, call, &[]), "{call}");
        }
        assert!(
            by_path
                .iter()
                .all(|call| !is_permitted(FileAccess::None, *call, &[]))
        );
        // Watches a file whose descriptor was received.
        assert!(is_permitted(FileAccess::None, watch, &[]));
    }

    #[test]
    fn open_files_cannot_signal_other_processes() {
        let control =
            |command: i32| is_permitted(FileAccess::None, libc::SYS_fcntl, &[3, command.into()]);
        assert!(control(libc::F_DUPFD_CLOEXEC));
        let close_on_exec = |set: i32| {
            let arguments = [3, libc::F_SETFD.into(), set.into()];
            is_permitted(FileAccess::None, libc::SYS_fcntl, &arguments)
        };
        assert!(close_on_exec(libc::FD_CLOEXEC) && !close_on_exec(0));
        for command in [
            libc::F_SETLEASE,
            libc::F_NOTIFY,
            libc::F_SETLK,
            libc::F_OFD_SETLKW,
            libc::F_SETOWN,
            libc::F_SETFL,
            libc::F_SETPIPE_SZ,
        ] {
            assert!(!control(command), "{command}");
        }
        let lock = |how: i32| is_permitted(FileAccess::None, libc::SYS_flock, &[3, how.into()]);
        assert!(lock(libc::LOCK_SH | libc::LOCK_NB) && lock(libc::LOCK_UN));
        assert!(!lock(libc::LOCK_SH) && !lock(libc::LOCK_EX | libc::LOCK_NB));
        let send = |address| {
            is_permitted(
                FileAccess::None,
                libc::SYS_sendto,
                &[3, 1, 1, 0, address, 0],
            )
        };
        assert!(send(0) && !send(4096) && !send(1 << 32));
    }

    #[test]
    fn unneeded_system_calls_are_forbidden() {
        for call in [
            libc::SYS_ioctl, // on a terminal, TIOCSTI would inject input
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_sendmsg,
            libc::SYS_sendmmsg,
            libc::SYS_setrlimit,
            libc::SYS_sched_setscheduler,
            libc::SYS_sched_setaffinity,
            libc::SYS_execve,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_pidfd_open,
            libc::SYS_memfd_create,
            libc::SYS_shmget,
            libc::SYS_pipe2,
            libc::SYS_splice,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
            libc::SYS_userfaultfd,
            libc::SYS_pwrite64,
            libc::SYS_ftruncate,
            libc::SYS_fallocate,
            libc::SYS_unlinkat,
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_setresuid,
            libc::SYS_capset,
            libc::SYS_keyctl,
            libc::SYS_fsetxattr,
        ] {
            assert!(!is_permitted(FileAccess::Landlocked, call, &[]), "{call}");
        }
        // The limits of the own process cannot be set.
        assert!(!is_permitted(
            FileAccess::Landlocked,
            libc::SYS_prlimit64,
            &[0, 2, 4096]
        ));
        let control = |option| is_permitted(FileAccess::None, libc::SYS_prctl, &[option]);
        assert!(control(libc::PR_SET_NAME.into()));
        assert!(!control(libc::PR_SET_DUMPABLE.into()));
    }
}
