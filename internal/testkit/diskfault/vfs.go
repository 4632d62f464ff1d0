package diskfault

import (
	"path/filepath"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	_ "github.com/destkit/destkit/internal/handles" // configures SQLite before its first use, which is here
)

// The virtual file system is the one of the system but for its xOpen, which hands out
// files whose methods are those of the system but for the ones that can fail. All is C
// memory: SQLite keeps the addresses.

// The types of SQLite's functions, as the library calls them.
type (
	opens     = func(tls *libc.TLS, vfs, name, f uintptr, flags int32, outFlags uintptr) int32
	deletes   = func(tls *libc.TLS, vfs, name uintptr, syncFolder int32) int32
	closes    = func(tls *libc.TLS, f uintptr) int32
	transfers = func(tls *libc.TLS, f, buffer uintptr, n int32, at int64) int32
	truncates = func(tls *libc.TLS, f uintptr, size int64) int32
	syncs     = func(tls *libc.TLS, f uintptr, flags int32) int32
	maps      = func(tls *libc.TLS, f uintptr, region, size, extend int32, to uintptr) int32
)

// pointer is a Go function as C knows it. The function must be one of the package: it is
// never collected.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function is the way back.
func function[F any](p uintptr) (f F) { *(*uintptr)(unsafe.Pointer(&f)) = p; return f }

// at is a value in C memory.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

var (
	registered = register()
	system     lib.Tsqlite3_vfs // as it was

	mu        sync.Mutex
	methods   = map[uintptr]uintptr{} // of the system, to ours
	openFiles sync.Map                // address of an open file to *handle
)

// handle is an open file on a disk that can fail.
type handle struct {
	disk *Disk
	file *file
	own  *lib.Tsqlite3_io_methods // of the system
}

// register makes the file system the one that is used when none is named.
func register() int32 {
	tls := libc.NewTLS()
	defer tls.Close()
	found := lib.Xsqlite3_vfs_find(tls, 0)
	if found == 0 {
		return lib.SQLITE_ERROR
	}
	system = *at[lib.Tsqlite3_vfs](found)
	ours := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(system)))
	name, err := libc.CString("diskfault")
	if ours == 0 || err != nil {
		return lib.SQLITE_NOMEM
	}
	vfs := at[lib.Tsqlite3_vfs](ours)
	*vfs = system
	vfs.FzName, vfs.FpNext = name, 0
	vfs.FxOpen, vfs.FxDelete = pointer[opens](open), pointer[deletes](remove)
	return lib.Xsqlite3_vfs_register(tls, ours, 1)
}

func open(tls *libc.TLS, vfs, name, f uintptr, flags int32, outFlags uintptr) int32 {
	code := function[opens](system.FxOpen)(tls, vfs, name, f, flags, outFlags)
	if code != lib.SQLITE_OK || name == 0 {
		return code
	}
	path := filepath.FromSlash(libc.GoString(name))
	d := on(path)
	if d == nil {
		return code
	}
	file, err := d.opened(path)
	if err != nil {
		return lib.SQLITE_CANTOPEN
	}
	its := at[uintptr](f) // the first field of every file: its methods
	openFiles.Store(f, &handle{d, file, at[lib.Tsqlite3_io_methods](*its)})
	*its = replaced(tls, *its)
	return code
}

// replaced gives our methods for those of the system, of which there are several.
func replaced(tls *libc.TLS, its uintptr) uintptr {
	mu.Lock()
	defer mu.Unlock()
	ours, ok := methods[its]
	if !ok {
		ours = libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
		to := at[lib.Tsqlite3_io_methods](ours)
		*to = *at[lib.Tsqlite3_io_methods](its)
		to.FxClose, to.FxTruncate, to.FxSync = pointer[closes](closeFile), pointer[truncates](truncate), pointer[syncs](syncFile)
		to.FxRead, to.FxWrite = pointer[transfers](read), pointer[transfers](write)
		to.FxShmMap = pointer[maps](share)
		methods[its] = ours
	}
	return ours
}

func handleOf(f uintptr) *handle {
	h, _ := openFiles.Load(f)
	return h.(*handle)
}

// remove is durable at once, as the names of files are here.
func remove(tls *libc.TLS, vfs, name uintptr, syncFolder int32) int32 {
	path := filepath.FromSlash(libc.GoString(name))
	code := function[deletes](system.FxDelete)(tls, vfs, name, syncFolder)
	if d := on(path); d != nil && code == lib.SQLITE_OK {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i, f := range d.files {
			if f.path == path {
				d.files = append(d.files[:i], d.files[i+1:]...)
				break
			}
		}
	}
	return code
}

func closeFile(tls *libc.TLS, f uintptr) int32 {
	h := handleOf(f)
	openFiles.Delete(f)
	code := function[closes](h.own.FxClose)(tls, f)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	h.file.closed()
	return code
}

func read(tls *libc.TLS, f, buffer uintptr, n int32, offset int64) int32 {
	h := handleOf(f)
	h.disk.mu.Lock()
	fault, failed := h.disk.fails(Read, h.file.path)
	h.disk.mu.Unlock()
	if failed {
		return fault.Code
	}
	return function[transfers](h.own.FxRead)(tls, f, buffer, n, offset)
}

func write(tls *libc.TLS, f, buffer uintptr, n int32, offset int64) int32 {
	h := handleOf(f)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	fault, failed := h.disk.fails(Write, h.file.path)
	if failed && !fault.Short {
		return fault.Code
	}
	if failed {
		n /= shortWrites
	}
	code := function[transfers](h.own.FxWrite)(tls, f, buffer, n, offset)
	if code == lib.SQLITE_OK {
		data := make([]byte, n)
		copy(data, unsafe.Slice(at[byte](buffer), n))
		h.file.pending = append(h.file.pending, change{offset, data})
	}
	if failed {
		return fault.Code
	}
	return code
}

func truncate(tls *libc.TLS, f uintptr, size int64) int32 {
	h := handleOf(f)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if fault, failed := h.disk.fails(Truncate, h.file.path); failed {
		return fault.Code
	}
	code := function[truncates](h.own.FxTruncate)(tls, f, size)
	if code == lib.SQLITE_OK {
		h.file.pending = append(h.file.pending, change{at: size})
	}
	return code
}

func syncFile(tls *libc.TLS, f uintptr, flags int32) int32 {
	h := handleOf(f)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if fault, failed := h.disk.fails(Sync, h.file.path); failed {
		h.file.synced(false)
		return fault.Code
	}
	code := function[syncs](h.own.FxSync)(tls, f, flags)
	h.file.synced(code == lib.SQLITE_OK)
	return code
}

// share gives memory that processes share: the index of a write-ahead log.
func share(tls *libc.TLS, f uintptr, region, size, extend int32, to uintptr) int32 {
	h := handleOf(f)
	if extend != 0 {
		h.disk.mu.Lock()
		fault, failed := h.disk.fails(Share, h.file.path)
		h.disk.mu.Unlock()
		if failed {
			return fault.Code
		}
	}
	return function[maps](h.own.FxShmMap)(tls, f, region, size, extend, to)
}
