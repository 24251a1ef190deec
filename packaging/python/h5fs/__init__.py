"""The program h5fs, which pip installs beside the other programs of the environment."""
