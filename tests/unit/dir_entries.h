/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DIR_ENTRIES_H
#define DIR_ENTRIES_H

#include <dirent.h>

/* Returns the number of directory entries including hidden ones, so that leftover temporary files are counted. */
static inline int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 2;
}

#endif
