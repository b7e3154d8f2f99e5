#!/bin/sh
# Build the smallest Open MPI that shows the cluster's PMIx at work, and the lab's MPI job with it, as an ordinary user.
#
# A site's users would get their MPI from EasyBuild or Spack (phase 5). The library is static, so that `srun --bcast` can carry
# the job as one file to nodes that share no file system yet; PMIx and hwloc stay shared and come from the deployed Slurm tree.
#
# usage: build_mpi.sh OPENMPI_TARBALL SLURM_TREE DESTINATION
set -eu
tarball=$1 tree=$2 destination=$3
here=$(dirname "$(readlink -f "$0")")

# Frameworks that a two-node hello over TCP never opens; leaving them out halves the build.
unused=coll-adapt,coll-ftagree,coll-han,coll-inter,coll-monitoring,coll-sync,coll-xhc,common-monitoring
unused=$unused,pml-cm,pml-monitoring,pml-v,vprotocol,osc,fcoll,fbtl,fs,io,sharedfp,topo-treematch,mtl
unused=$unused,btl-sm,btl-uct,smsc,hook,op-avx

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$tarball" -C "$work" --strip-components=1
mkdir "$work/build"
cd "$work/build"
../configure --prefix="$work/mpi" --enable-static --disable-shared --disable-dlopen \
    --with-pmix="$tree" --with-hwloc="$tree" --with-libevent=external --without-prrte --disable-prrte \
    --enable-mpi-fortran=no --disable-oshmem --disable-io-romio --disable-man-pages --disable-sphinx \
    --without-cuda --without-ucx --without-ofi --enable-mca-no-build="$unused" \
    CFLAGS=-O1 LDFLAGS="-Wl,-rpath,$tree/lib"
make -j"$(nproc)"
make install
mkdir -p "$destination"
"$work/mpi/bin/mpicc" -O1 -Wl,-rpath,"$tree/lib" -o "$destination/mpi_hello.new" "$here/mpi_hello.c"
mv "$destination/mpi_hello.new" "$destination/mpi_hello"
