"""The lab: a whole cluster of systemd-nspawn containers on one machine."""
