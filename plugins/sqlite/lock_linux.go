package sqlite

// getLock is F_OFD_GETLK of fcntl(2), which sees the locks of this process too.
const getLock = 36
