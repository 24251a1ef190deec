# nixpkgs. To be filled in: URL-OF-THE-RELEASE (the sources), SHA256-OF-THE-RELEASE, and
# SHA256-OF-THE-CRATES, which Nix prints at the first build.
{
  lib,
  rustPlatform,
  fetchzip,
}:

rustPlatform.buildRustPackage rec {
  pname = "h5fs";
  version = "0.2.0";

  src = fetchzip {
    url = "URL-OF-THE-RELEASE";
    hash = "SHA256-OF-THE-RELEASE";
  };

  cargoHash = "SHA256-OF-THE-CRATES";

  # The tests need mounts and h5py.
  doCheck = false;

  postInstall = ''
    patchShebangs scripts
    scripts/install --prefix "$out" --binary "$out/bin/h5fs"
  '';

  meta = {
    description = "Mounts an HDF5 or ASDF file as a read-only filesystem";
    license = lib.licenses.mit;
    mainProgram = "h5fs";
    platforms = lib.platforms.linux;
  };
}
