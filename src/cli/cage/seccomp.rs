//! seccomp: which system calls there are; seccomp(2). The only file that knows the crate.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Leaves this thread, and those that it starts, the system calls that serving takes. All others answer
/// `EPERM`.
///
/// # Errors
/// What the kernel cannot do.
pub(super) fn restrict() -> Result<(), String> {
    programs()
        .and_then(|programs| {
            programs
                .iter()
                .try_for_each(|program| apply_filter(program))
        })
        .map_err(|error| format!("no seccomp filter: {error}"))
}

fn programs() -> seccompiler::Result<[BpfProgram; 2]> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = |rules, otherwise, then| -> seccompiler::Result<BpfProgram> {
        Ok(SeccompFilter::new(rules, otherwise, then, machine)?.try_into()?)
    };
    let refused = |errno: i32| SeccompAction::Errno(errno.unsigned_abs());
    // A refusal by one of them counts more than what the other allows.
    Ok([
        filter(unknown(), SeccompAction::Allow, refused(libc::ENOSYS))?,
        filter(allowed()?, refused(libc::EPERM), SeccompAction::Allow)?,
    ])
}

/// Calls that the C library does without where the kernel does not know them.
fn unknown() -> Rules {
    // Its flags lie in memory, where no filter sees them; those of `clone` do not.
    Rules::from([(libc::SYS_clone3, vec![])])
}

/// All calls that there are left, some only with certain arguments.
fn allowed() -> seccompiler::Result<Rules> {
    let mut rules: Rules = ALWAYS.iter().map(|call| (*call, vec![])).collect();
    for (call, conditions) in sometimes() {
        let rule = conditions.into_iter().collect::<Result<Vec<_>, _>>()?;
        rules.entry(call).or_default().push(SeccompRule::new(rule)?);
    }
    Ok(rules)
}

/// A call, and what must hold for its arguments.
type Sometimes = (
    i64,
    Vec<Result<SeccompCondition, seccompiler::BackendError>>,
);

fn sometimes() -> Vec<Sometimes> {
    let argument = |index: u8, length: SeccompCmpArgLen, op: SeccompCmpOp, value: i32| {
        SeccompCondition::new(index, length, op, u64::from(value.unsigned_abs()))
    };
    let without =
        |index, bits: i32| argument(index, Qword, MaskedEq(u64::from(bits.unsigned_abs())), 0);
    let read_only = |index| without(index, libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC);
    let datagrams = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    vec![
        // Files are only read.
        (libc::SYS_openat, vec![read_only(2)]),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, vec![read_only(1)]),
        // No memory becomes code.
        (libc::SYS_mmap, vec![without(2, libc::PROT_EXEC)]),
        (libc::SYS_mprotect, vec![without(2, libc::PROT_EXEC)]),
        // Threads, but no processes.
        (
            libc::SYS_clone,
            vec![argument(0, Qword, MaskedEq(thread), libc::CLONE_THREAD)],
        ),
        // A thread has a name.
        (
            libc::SYS_prctl,
            vec![argument(0, Dword, Eq, libc::PR_SET_NAME)],
        ),
        // Aborting.
        (libc::SYS_tgkill, vec![argument(0, Dword, Eq, own_id())]),
        // The log's socket, which may have to be connected anew; nothing that speaks in streams.
        (
            libc::SYS_socket,
            vec![
                argument(0, Dword, Eq, libc::AF_UNIX),
                argument(1, Dword, Eq, datagrams),
            ],
        ),
        (
            libc::SYS_ioctl,
            vec![SeccompCondition::new(1, Dword, Eq, libc::FIONBIO)],
        ),
        // Whether somebody writes the source is seen by trying for the lock that readers share.
        (
            libc::SYS_flock,
            vec![argument(1, Dword, Eq, libc::LOCK_SH | libc::LOCK_NB)],
        ),
        (libc::SYS_flock, vec![argument(1, Dword, Eq, libc::LOCK_UN)]),
    ]
}

fn own_id() -> i32 {
    nix::unistd::getpid().as_raw()
}

/// Calls whose arguments do not matter.
const ALWAYS: &[i64] = &[
    // serving
    libc::SYS_read,
    libc::SYS_writev,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_readv,
    // files
    libc::SYS_openat2,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    // memory
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    // threads; the other program says that there is no `clone3`
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
    // time and chance
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    // the log's socket
    libc::SYS_connect,
    libc::SYS_sendto,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
];
