use super::*;
use h5fs_reader::array::CacheSize;
use nix::errno::Errno;

fn scan_of(group: String, values: Vec<ElementSummary>) -> MemberScan {
    MemberScan {
        skeleton: Arc::new(Skeleton {
            groups: vec![group.into_bytes().into()],
            variables: Vec::new(),
            dimensions: Vec::new(),
            tables: Vec::new(),
        }),
        common_metadata: CommonMetadata::default(),
        lengths: Box::default(),
        stored_lengths: Vec::new(),
        summaries: values.into(),
        refusals: Vec::new(),
    }
}

fn collect_scans(scans: impl Iterator<Item = MemberScan>) -> ScanResults<'static> {
    let mut gathered = ScanResults::default();
    for (number, scan) in scans.enumerate() {
        gathered.add_scan(number, &Path::from(&b"name"[..]), Ok(scan), None);
    }
    gathered
}

#[test]
fn the_number_of_skeletons_is_limited() {
    let differ =
        |count| collect_scans((0..count).map(|n: usize| scan_of(n.to_string(), Vec::new())));
    assert!(differ(limits::JOINED_SKELETONS).failure.is_none());
    let failed = differ(limits::JOINED_SKELETONS + 1).failure;
    assert!(matches!(failed, Some(Error::Limit { .. })));
}

#[test]
fn scan_memory_is_limited_and_equal_elements_count_once() {
    const MIB: usize = 1 << 20;
    let files = limits::JOINED_BYTES as usize / MIB + 1;
    let of = |first: &dyn Fn(usize) -> u8| {
        let known = (0..files).map(|n| {
            let mut elements = vec![0; MIB];
            elements[0] = first(n);
            vec![ElementSummary::Elements(elements.into())]
        });
        collect_scans(known.map(|known| scan_of(String::new(), known)))
    };
    let alike = of(&|_| 7);
    assert!(alike.failure.is_none() && alike.weight < 2 * MIB as u64);
    assert!(matches!(
        of(&|n| n as u8).failure,
        Some(Error::Limit { .. })
    ));
}

#[derive(Default)]
struct Names {
    names: Vec<Path>,
    weight: u64,
    is_remote: bool,
    is_partial: bool,
}

impl MemberFiles for Names {
    fn member_paths(&self) -> &[Path] {
        &self.names
    }

    fn open(&self, _number: usize, _: &CancelToken) -> Result<OpenedMember> {
        Err(Error::NotFound)
    }

    fn open_linked(
        &self,
        _from: &OpenedMember,
        _name: &[u8],
        _: &CancelToken,
    ) -> Result<Option<OpenedMember>> {
        Ok(None)
    }

    fn reopen(&self, number: usize) -> Result<OpenedMember> {
        self.open(number, &CancelToken::default())
    }

    fn cache_key(&self, _number: usize) -> Option<MemberKey> {
        None
    }

    fn weight(&self) -> u64 {
        self.weight
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn can_omit_unreadable(&self) -> bool {
        self.is_partial
    }

    fn should_verify(&self) -> bool {
        false
    }

    fn report_start(&self) {}

    fn report_scanned(&self, _was_known: bool) {}
}

fn members_of(engine: &Arc<Engine>, names: Names) -> Result<Members> {
    let scanning = ScanOptions {
        threads: 1,
        cache_file: None,
        cancel: &CancelToken::default(),
    };
    Members::scan(engine, Box::new(names), &scanning, &mut Vec::new())
}

#[test]
fn the_memory_of_joined_arrays_is_limited() {
    let engine = Engine::new(CacheSize::from(1 << 20), 1);
    let names = Names {
        weight: 10,
        ..Names::default()
    };
    let members = members_of(&engine, names).unwrap();
    assert!(members.reserve_inline(limits::JOINED_BYTES - 11));
    assert!(!members.reserve_inline(2) && members.reserve_inline(1) && !members.reserve_inline(1));
}

#[test]
fn a_refused_member_is_omitted_only_from_partial_results() {
    let denied = Error::from_cause(Cause::System(Errno::EACCES as i32), "a.nc");
    let failed = Error::from_cause(Cause::Unavailable, "a.nc: 503");
    let damaged = Error::corrupt("a.nc", None);
    for (is_remote, is_partial, left_out) in [
        (false, false, [true, false, true]),
        (true, false, [false, false, true]),
        (true, true, [true, true, true]),
    ] {
        let names = Names {
            is_remote,
            is_partial,
            ..Names::default()
        };
        let found = [&denied, &failed, &damaged].map(|error| is_permanently_omitted(error, &names));
        assert_eq!(found, left_out, "far {is_remote}, a part {is_partial}");
    }
    let names = Names {
        is_partial: true,
        ..Names::default()
    };
    assert!(!is_permanently_omitted(&Error::cancelled(), &names));
}

#[test]
fn the_number_of_files_is_limited() {
    let engine = Engine::new(CacheSize::from(1 << 20), 1);
    let of = |count| {
        let names = vec![Path::default(); count];
        let names = Names {
            names,
            ..Names::default()
        };
        members_of(&engine, names)
    };
    assert!(of(2).is_ok());
    let many = of(limits::JOINED_FILES + 1);
    assert!(matches!(many, Err(Error::Limit { .. })));
}
