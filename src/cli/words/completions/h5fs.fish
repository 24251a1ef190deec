# Completion of h5fs for fish. The program tells what fits: `h5fs --complete` ends with 0 if that is
# all, and otherwise names of files fit, too.
function __h5fs_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    $program --complete fish $words[2..] "$current" 2> /dev/null
    or __fish_complete_path "$current"
end
complete -c h5fs -f -a '(__h5fs_complete)'
