# Homebrew on Linux. To be filled in: PAGE-OF-THE-PROJECT, URL-OF-THE-RELEASE (the sources) and
# SHA256-OF-THE-RELEASE.
class H5fs < Formula
  desc "Mount an HDF5 or ASDF file as a read-only filesystem"
  homepage "PAGE-OF-THE-PROJECT"
  url "URL-OF-THE-RELEASE"
  version "0.2.0"
  sha256 "SHA256-OF-THE-RELEASE"
  license "MIT"

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "cargo", "build", "--locked", "--release"
    system "scripts/install", "--prefix", prefix, "--binary", "target/release/h5fs"
    bash_completion.install prefix/"share/bash-completion/completions/h5fs"
    fish_completion.install prefix/"share/fish/vendor_completions.d/h5fs.fish"
  end

  def caveats
    <<~EOS
      Mounts by others than root need fusermount3 of the system, which has to be setuid root:
      install its package fuse3. `h5fs ls` and `h5fs cat` need nothing.
    EOS
  end

  test do
    (testpath/"answer.asdf").write <<~EOS
      #ASDF 1.0.0
      #ASDF_STANDARD 1.5.0
      %YAML 1.1
      --- !<tag:stsci.edu:asdf/core/asdf-1.1.0>
      answer: 42
      ...
    EOS
    assert_equal "42", shell_output("#{bin}/h5fs cat answer.asdf answer").chomp
  end
end
