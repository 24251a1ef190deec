# complete.zsh DIRECTORY WORDS: types the words and a tab in an interactive zsh with the completions
# in DIRECTORY, and prints the resulting line.
zmodload zsh/zpty
zpty inner "TERM=dumb zsh -f -i"
zpty -w inner "fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; unsetopt zle_bracketed_paste"
# A widget prints the line, without the terminal's control codes.
zpty -w inner 'show() { print -r -- "[$BUFFER]" }; zle -N show; bindkey "^X" show; print re""ady'
until [[ $shown == *ready* ]]; do zpty -r inner shown || exit 1; done
zpty -w -n inner "$2"$'\t\x18'
until [[ $shown == *\[*\]* ]]; do zpty -r inner shown || exit 1; done
shown=${shown##*\[}
print -r -- "${shown%%\]*}"
zpty -d inner
