# Completion of h5fs for bash. `h5fs --complete` prints the candidates. Exit status 0 means that
# there are no others. Otherwise, file names are candidates too.
_h5fs() {
    local found files='' program=${COMP_WORDS[0]/#\~\//$HOME/}
    found=$("$program" --complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null) || files=yes
    COMPREPLY=()
    [[ ! $found ]] || mapfile -t COMPREPLY <<< "$found"
    if [[ ! $files ]]; then
        compopt +o default
    elif [[ $found ]]; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
    # so that bash quotes special characters of file names
    [[ ${COMPREPLY[*]} != *[!A-Za-z0-9\ _,=./-]* && ! $files ]] || compopt -o filenames
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *[/=,] ]] || compopt -o nospace
} 2> /dev/null
complete -o default -F _h5fs h5fs
