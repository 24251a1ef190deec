# Completion of h5fs for fish. `h5fs --complete` prints the candidates. Exit status 0 means that
# there are no others. Otherwise, file names are candidates too.
function __h5fs_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    $program --complete fish $words[2..] "$current" 2> /dev/null
    or __fish_complete_path "$current"
end
complete -c h5fs -f -a '(__h5fs_complete)'
