/* An NVML that a test plays: what it answers stands here. The program is linked with --wrap=dlopen and --wrap=dlsym. */
#ifndef TEST_NVML_PLAYED_H
#define TEST_NVML_PLAYED_H

#define PLAYED_MOST 16

extern struct nvml_played {
    int count;
    const char *bus[PLAYED_MOST];
    int links[PLAYED_MOST][PLAYED_MOST];             /* NVLinks straight to another GPU */
    int switched;                                    /* NVLinks of each GPU to an NVSwitch */
    int untold;                                      /* the driver does not say what is at the other end */
    int busy;                                        /* so many questions about links fail, from the next one on */
    unsigned clock[PLAYED_MOST], limit[PLAYED_MOST]; /* MHz: the most, and what applications get; 0: 1980 */
    unsigned persistence_off, exclusive, ecc_off;    /* a bit for each GPU */
    unsigned narrow;                                 /* a bit for each GPU: its PCIe link has half its lanes */
    unsigned long long uncorrected[PLAYED_MOST];
    unsigned long long bar1_mb; /* 0: as much as memory */
    unsigned mig;
} nvml_played;

#endif
