# No package is half installed, as a power cut leaves them: the package manager would refuse every later one.
include:
  - p0_plan

"packages: finished":
  system_repair.packages_finished:
    - name: packages
    - require:
      - sls: p0_plan
