"""The program h5fs, which pip installs next to the other programs of the environment."""
